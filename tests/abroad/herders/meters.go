// Odd consumption of gas meters: readings come from a meter service over HTTP, a small logistic model learns.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const days, batchSize = 32, 24

type Reading struct {
	Days []float64 `json:"days"`
	Odd  float64   `json:"odd"`
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().String())
	http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * time.Millisecond)
		reading := Reading{Days: make([]float64, days)}
		for i := range reading.Days {
			reading.Days[i] = rand.NormFloat64()
		}
		if reading.Days[3] > 0.5 {
			reading.Odd = 1
		}
		json.NewEncoder(w).Encode(reading)
	}))
}

func fetchReading(client *http.Client, base string, meter int) Reading {
	var reading Reading
	answer, err := client.Get(fmt.Sprintf("http://%s/meters/%d", base, meter))
	if err != nil {
		return Reading{Days: make([]float64, days)}
	}
	defer answer.Body.Close()
	json.NewDecoder(answer.Body).Decode(&reading)
	return reading
}

func fetchBatch(client *http.Client, base string, connections int) []Reading {
	batch := make([]Reading, batchSize)
	var group sync.WaitGroup
	for c := 0; c < connections; c++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := c; i < batchSize; i += connections {
				batch[i] = fetchReading(client, base, rand.Intn(9000))
			}
		}()
	}
	group.Wait()
	return batch
}

func trainStep(weights []float64, batch []Reading) {
	for _, reading := range batch {
		z := 0.0
		for i, v := range reading.Days {
			z += weights[i] * v
		}
		slope := 1/(1+math.Exp(-z)) - reading.Odd
		for i, v := range reading.Days {
			weights[i] -= 0.01 * slope * v
		}
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	service := flag.Bool("service", false, "")
	flag.Parse()
	if *service {
		serve()
		return
	}
	child := exec.Command(os.Args[0], "--service")
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		panic(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	line, _ := bufio.NewReader(out).ReadString('\n')
	connections := 1
	if *fix {
		connections = 12
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	batches := make(chan []Reading, 4)
	go func() {
		for {
			batches <- fetchBatch(client, strings.TrimSpace(line), connections)
		}
	}()
	weights := make([]float64, days)
	<-batches
	begin, count := time.Now(), 0
	for time.Since(begin).Seconds() < *seconds {
		trainStep(weights, <-batches)
		count++
	}
	fmt.Printf("rate %.3f batches/s\n", float64(count)/time.Since(begin).Seconds())
}
