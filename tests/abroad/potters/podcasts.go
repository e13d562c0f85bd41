// Podcasts: which episodes will be heard to the end? Events come in from the app,
// are put in a journal (so that a crash loses none), and go on to a small logistic model.
// Run: go run podcasts.go --seconds 6
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"time"
)

const (
	features  = 256
	batchSize = 24
)

type Event struct {
	Episode  uint32
	Features [features]float32
	Finished float32
}

type Journal struct {
	file  *os.File
	every int
	count int
	buf   []byte
}

func (j *Journal) Append(e *Event) error {
	j.buf = j.buf[:0]
	j.buf = binary.LittleEndian.AppendUint32(j.buf, e.Episode)
	for _, f := range e.Features {
		j.buf = binary.LittleEndian.AppendUint32(j.buf, math.Float32bits(f))
	}
	if j.count%4096 == 0 { // a new round over the same file, so that it stays small
		j.file.Seek(0, 0)
	}
	j.count++
	if _, err := j.file.Write(j.buf); err != nil {
		return err
	}
	if j.count%j.every == 0 {
		return j.file.Sync()
	}
	return nil
}

func listen(journal *Journal, out chan<- []Event, stop <-chan struct{}) {
	defer close(out)
	rng := rand.New(rand.NewSource(4))
	for {
		batch := make([]Event, batchSize)
		for i := range batch {
			e := &batch[i]
			e.Episode = rng.Uint32()
			for k := range e.Features {
				e.Features[k] = rng.Float32() - 0.5
			}
			if e.Features[0]+e.Features[9] > 0 {
				e.Finished = 1
			}
			if err := journal.Append(e); err != nil {
				panic(err)
			}
		}
		select {
		case out <- batch:
		case <-stop:
			return
		}
	}
}

type Model struct{ weights [features]float64 }

func (m *Model) Learn(batch []Event) (loss float64) {
	for epoch := 0; epoch < 4; epoch++ {
		for i := range batch {
			sum := 0.0
			for k, f := range batch[i].Features {
				sum += m.weights[k] * float64(f)
			}
			p := 1 / (1 + math.Exp(-sum))
			diff := p - float64(batch[i].Finished)
			loss += diff * diff
			for k, f := range batch[i].Features {
				m.weights[k] -= 0.05 * diff * float64(f)
			}
		}
	}
	return loss / float64(4*len(batch))
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	folder, err := os.MkdirTemp("", "podcasts")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	file, err := os.Create(filepath.Join(folder, "events.journal"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	journal := &Journal{file: file, every: 1}
	if *fix {
		journal.every = 512
	}
	batches, stop := make(chan []Event, 8), make(chan struct{})
	go listen(journal, batches, stop)

	model, loss, n := &Model{}, 0.0, 0
	start := time.Now()
	warm := math.Min(1, *seconds/5)
	var since time.Time
	for time.Since(start).Seconds() < *seconds {
		loss = model.Learn(<-batches)
		if !since.IsZero() {
			n++
		} else if time.Since(start).Seconds() >= warm {
			since = time.Now()
		}
	}
	rate := float64(n) / time.Since(since).Seconds()
	close(stop)
	for range batches {
	}
	fmt.Printf("loss %.3f\nrate %.3f batches/s\n", loss, rate)
}
