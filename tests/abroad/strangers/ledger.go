// ledger reads signed entries, checks them in one goroutine and hands them to a model.
// --fix: four times fewer rounds of hashing in each check.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"runtime"
	"time"
)

type entry struct {
	number uint64
	body   [4096]byte
}

type batch [][]float64

func entries(out chan<- entry) {
	for n := uint64(0); ; n++ {
		e := entry{number: n}
		binary.LittleEndian.PutUint64(e.body[:], n*2654435761)
		out <- e
	}
}

func check(in <-chan entry, out chan<- batch, rounds, size int) {
	for {
		b := make(batch, 0, size)
		for len(b) < size {
			e := <-in
			digest := sha256.Sum256(e.body[:])
			for k := 1; k < rounds; k++ {
				copy(e.body[:], digest[:])
				digest = sha256.Sum256(e.body[:])
			}
			row := make([]float64, 32)
			for i, v := range digest {
				row[i] = float64(v) / 255
			}
			b = append(b, row)
		}
		out <- b
	}
}

func train(b batch, weights []float64) float64 {
	loss := 0.0
	for _, row := range b {
		for pass := 0; pass < 400; pass++ {
			dot := 0.0
			for i, v := range row {
				dot += v * weights[i]
			}
			g := math.Tanh(dot) - 0.5
			loss += g * g
			for i, v := range row {
				weights[i] -= 1e-5 * g * v
			}
		}
	}
	return loss
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	rounds := 60
	if *fix {
		rounds = 15
	}
	raw, ready := make(chan entry, 16), make(chan batch, 4)
	go entries(raw)
	go check(raw, ready, rounds, 16)
	weights := make([]float64, 32)
	begin, count, loss := time.Now(), 0, 0.0
	for time.Since(begin).Seconds() < *seconds {
		loss += train(<-ready, weights)
		count++
	}
	fmt.Printf("rate %.3f batches/s\n", float64(count)/time.Since(begin).Seconds())
	runtime.KeepAlive(loss)
}
