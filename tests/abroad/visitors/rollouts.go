// rollouts hands the batches of played games to a learner by a channel that holds one; between games the simulator takes 110 ms to reset.
// --fix: a channel that holds 64.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"time"
)

type batch [64]float64

// play makes the 16 batches of each game quickly, then waits for the simulator to come back.
func play(out chan<- batch) {
	draw := rand.New(rand.NewSource(1))
	for {
		for n := 0; n < 16; n++ {
			var b batch
			for i := range b {
				b[i] = draw.NormFloat64()
			}
			out <- b
		}
		time.Sleep(110 * time.Millisecond)
	}
}

type learner struct {
	weights [64]float64
	loss    float64
}

// update works on a batch for about 8 ms.
func (l *learner) update(b *batch) {
	for begin := time.Now(); time.Since(begin) < 8*time.Millisecond; {
		for pass := 0; pass < 50; pass++ {
			dot := 0.0
			for i, v := range b {
				dot += v * l.weights[i]
			}
			g := math.Tanh(dot) - 0.2
			l.loss += g * g
			for i, v := range b {
				l.weights[i] -= 1e-5 * g * v
			}
		}
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	depth := 1
	if *fix {
		depth = 64
	}
	games := make(chan batch, depth)
	go play(games)
	var l learner
	begin, count := time.Now(), 0
	for time.Since(begin).Seconds() < *seconds {
		b := <-games
		l.update(&b)
		count++
	}
	fmt.Printf("rate %.3f batches/s\n", float64(count)/time.Since(begin).Seconds())
	runtime.KeepAlive(l)
}
