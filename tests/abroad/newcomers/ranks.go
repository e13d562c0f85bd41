// A reader goroutine parses rows into a channel; the main goroutine takes a step of logistic regression with many passes.
// --fix: fewer passes. --fix2: rows that are already parsed.
package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

type batch struct {
	rows   [][]float64
	labels []float64
}

func line(n int) string {
	var b strings.Builder
	for i := 0; i < 24; i++ {
		fmt.Fprintf(&b, "%.3f,", math.Sin(float64(n*31+i)))
	}
	fmt.Fprintf(&b, "%d", n&1)
	return b.String()
}

func parse(lines []string) batch {
	var out batch
	for _, l := range lines {
		fields := strings.Split(l, ",")
		row := make([]float64, 24)
		for i := range row {
			row[i], _ = strconv.ParseFloat(fields[i], 64)
		}
		label, _ := strconv.ParseFloat(fields[24], 64)
		out.rows, out.labels = append(out.rows, row), append(out.labels, label)
	}
	return out
}

func reader(lines []string, out chan<- batch, cheap bool) {
	kept := parse(lines[:64])
	for at := 0; ; at = (at + 64) % (len(lines) - 64) {
		if cheap {
			out <- kept
		} else {
			out <- parse(lines[at : at+64])
		}
	}
}

func trainStep(weights []float64, b batch, passes int) {
	for p := 0; p < passes; p++ {
		for r, row := range b.rows {
			z := 0.0
			for i, v := range row {
				z += weights[i] * v
			}
			g := 1/(1+math.Exp(-z)) - b.labels[r]
			for i, v := range row {
				weights[i] -= 0.01 * g * v
			}
		}
	}
}

func main() {
	seconds, passes, cheap := 6.0, 1200, false
	for i, a := range os.Args {
		switch a {
		case "--seconds":
			seconds, _ = strconv.ParseFloat(os.Args[i+1], 64)
		case "--fix":
			passes = 300
		case "--fix2":
			cheap = true
		}
	}
	lines := make([]string, 2048)
	for i := range lines {
		lines[i] = line(i)
	}
	batches := make(chan batch, 8)
	go reader(lines, batches, cheap)
	weights := make([]float64, 24)
	begin, count := time.Now(), 0
	for b := range batches {
		trainStep(weights, b, passes)
		count++
		if time.Since(begin).Seconds() > seconds {
			break
		}
	}
	fmt.Printf("rate %.3f batches/s\n", float64(count)/time.Since(begin).Seconds())
}
