// Actors and a learner: 48 environments send an observation and wait for their action; a batcher gathers up to 64 observations,
// or what came within 25 ms; the main goroutine learns from the batch and answers.
// --fix: at most 48 observations a batch.
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"time"
)

const (
	environments = 48
	width        = 64
	linger       = 25 * time.Millisecond
)

type observation struct {
	values []float64
	action chan float64
}

func environment(seed int64, requests chan<- observation) {
	random := rand.New(rand.NewSource(seed))
	state := make([]float64, width)
	action := make(chan float64)
	for {
		values := make([]float64, width)
		for i := range state {
			state[i] = 0.95*state[i] + 0.05*random.NormFloat64()
			values[i] = state[i]
		}
		requests <- observation{values, action}
		state[0] += <-action
	}
}

func gather(most int, requests <-chan observation, batches chan<- []observation) {
	for {
		batch := []observation{<-requests}
		timer := time.NewTimer(linger)
		for waiting := true; waiting && len(batch) < most; {
			select {
			case one := <-requests:
				batch = append(batch, one)
			case <-timer.C:
				waiting = false
			}
		}
		timer.Stop()
		batches <- batch
	}
}

func learn(weights []float64, batch []observation) float64 {
	loss := 0.0
	for _, one := range batch {
		score := 0.0
		for i, value := range one.values {
			score += weights[i] * value
		}
		wrong := score - one.values[1]
		loss += wrong * wrong
		for i, value := range one.values {
			weights[i] -= 0.001 * wrong * value
		}
		one.action <- -0.1 * score
	}
	return loss / float64(len(batch))
}

func main() {
	seconds := flag.Float64("seconds", 6, "how long")
	fix := flag.Bool("fix", false, "with the program's own change")
	flag.Parse()
	most := 64
	if *fix {
		most = environments
	}
	requests, batches := make(chan observation, environments), make(chan []observation, 1)
	for seed := int64(0); seed < environments; seed++ {
		go environment(seed, requests)
	}
	go gather(most, requests, batches)
	weights := make([]float64, width)
	loss, count := 0.0, 0
	begin := time.Now()
	for time.Since(begin).Seconds() < *seconds {
		loss = learn(weights, <-batches)
		count++
	}
	fmt.Fprintf(os.Stderr, "loss %g\n", loss)
	fmt.Printf("rate %.3f batches/s\n", float64(count)/time.Since(begin).Seconds())
}
