// Forecasts the next temperature of every machine of a fleet from the fields of its last report.
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"time"
)

const (
	channels = 6
	batch    = 1024
	reports  = 50000
)

type report struct {
	machine uint32
	values  [channels]float32
	next    float32
}

func write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out, rng := bufio.NewWriter(file), rand.New(rand.NewSource(4))
	for i := 0; i < reports; i++ {
		fields := make([]float32, channels+1)
		for j := range channels {
			fields[j] = rng.Float32()
			fields[channels] += fields[j] / float32(j+1)
		}
		if err := binary.Write(out, binary.LittleEndian, uint32(i%500)); err != nil {
			return err
		}
		if err := binary.Write(out, binary.LittleEndian, fields); err != nil {
			return err
		}
	}
	return out.Flush()
}

func field(r io.Reader) (uint32, error) {
	var word [4]byte
	_, err := io.ReadFull(r, word[:])
	return binary.LittleEndian.Uint32(word[:]), err
}

func next(r io.Reader) (report, error) {
	var one report
	var err error
	if one.machine, err = field(r); err != nil {
		return one, err
	}
	for j := 0; j <= channels; j++ {
		bits, err := field(r)
		if err != nil {
			return one, err
		}
		if j < channels {
			one.values[j] = math.Float32frombits(bits)
		} else {
			one.next = math.Float32frombits(bits)
		}
	}
	return one, nil
}

// feed sends batches of the file's reports, again and again, until the program is over.
func feed(path string, buffered bool, batches chan<- []report, over <-chan struct{}) {
	defer close(batches)
	rows := make([]report, 0, batch)
	for {
		file, err := os.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		var source io.Reader = file
		if buffered {
			source = bufio.NewReaderSize(file, 1<<20)
		}
		for one, err := next(source); err == nil; one, err = next(source) {
			rows = append(rows, one)
			if len(rows) < batch {
				continue
			}
			select {
			case batches <- rows:
				rows = make([]report, 0, batch)
			case <-over:
				file.Close()
				return
			}
		}
		file.Close()
	}
}

func train(weights *[channels]float32, rows []report) {
	var slope [channels]float32
	for i := range rows {
		guess := float32(0)
		for j, v := range rows[i].values {
			guess += weights[j] * v
		}
		for j, v := range rows[i].values {
			slope[j] += (guess - rows[i].next) * v
		}
	}
	for j := range slope {
		weights[j] -= 0.1 * slope[j] / float32(len(rows))
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "how long to train")
	fix := flag.Bool("fix", false, "with the program's own change")
	flag.Parse()
	folder, err := os.MkdirTemp("", "fleet")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "reports.bin")
	if err := write(path); err != nil {
		log.Fatal(err)
	}
	batches, over := make(chan []report, 8), make(chan struct{})
	go feed(path, *fix, batches, over)
	var weights [channels]float32
	warm := math.Min(1, *seconds/5)
	start, since, done, skipped := time.Now(), time.Time{}, 0, 0
	for time.Since(start).Seconds() < *seconds {
		train(&weights, <-batches)
		done++
		if since.IsZero() && time.Since(start).Seconds() >= warm {
			since, skipped = time.Now(), done
		}
	}
	rate := float64(done-skipped) / time.Since(since).Seconds()
	close(over)
	for range batches {
	}
	fmt.Printf("rate %.3f batches/s\n", rate)
}
