// A goroutine reads electricity meters' lines from a file, a byte at a time as they once came from a serial port; main learns a household's load.
// --fix: the file gets a bufio.Reader.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const batchSize = 64

type reading struct {
	hour, weekday, outside, load float64
}

func write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	random := rand.New(rand.NewSource(3))
	for i := 0; i < 20000; i++ {
		hour, outside := float64(i%24), random.NormFloat64()*8+10
		fmt.Fprintf(out, "%.0f;%d;%.2f;%.3f;meter %08d of the municipal works\n", hour, i/24%7, outside, 0.3+0.2*math.Sin(hour/4)-0.01*outside, random.Intn(1e8))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func line(in io.Reader) (string, error) {
	var text []byte
	one := make([]byte, 1)
	for {
		if _, err := in.Read(one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(text), nil
		}
		text = append(text, one[0])
	}
}

func read(path string, buffered bool, batches chan<- []reading, over <-chan struct{}) {
	defer close(batches)
	for {
		file, err := os.Open(path)
		if err != nil {
			return
		}
		var in io.Reader = file
		if buffered {
			in = bufio.NewReaderSize(file, 1<<16)
		}
		batch := make([]reading, 0, batchSize)
		for {
			text, err := line(in)
			if err != nil {
				break
			}
			part := strings.SplitN(text, ";", 5)
			var n [4]float64
			for i := range n {
				n[i], _ = strconv.ParseFloat(part[i], 64)
			}
			if batch = append(batch, reading{n[0], n[1], n[2], n[3]}); len(batch) == batchSize {
				select {
				case batches <- batch:
				case <-over:
					file.Close()
					return
				}
				batch = make([]reading, 0, batchSize)
			}
		}
		file.Close()
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	folder, err := os.MkdirTemp("", "meters")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "meters.csv")
	if err := write(path); err != nil {
		panic(err)
	}
	batches, over := make(chan []reading, 16), make(chan struct{})
	go read(path, *fix, batches, over)
	weights := make([]float64, 5)
	first := time.Now()
	var since time.Time
	count, skipped := 0, 0
	for batch := range batches {
		for _, r := range batch {
			x := [5]float64{1, math.Sin(r.hour / 4), math.Cos(r.hour / 4), r.weekday / 7, r.outside / 30}
			miss := -r.load
			for i := range x {
				miss += weights[i] * x[i]
			}
			for i := range x {
				weights[i] -= 0.01 * miss * x[i]
			}
		}
		count++
		passed := time.Since(first).Seconds()
		if since.IsZero() && passed >= math.Min(1, *seconds/5) {
			since, skipped = time.Now(), count
		}
		if passed >= *seconds {
			break
		}
	}
	rate := float64(count-skipped) / time.Since(since).Seconds()
	close(over)
	for range batches {
	}
	fmt.Printf("rate %.3f batches/s\n", rate)
}
