// Learns which ledger entries an auditor would question, and keeps a journal of what it has seen, so that a run that
// was cut off can go on.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"time"
)

const (
	fields = 24
	batch  = 128
)

type entry struct {
	account uint64
	values  [fields]float64
	odd     float64
}

type model struct {
	weights [fields]float64
	bias    float64
}

func (m *model) step(entries []entry, rate float64) {
	var slope [fields]float64
	var shift float64
	for i := range entries {
		e := &entries[i]
		sum := m.bias
		for j, v := range e.values {
			sum += m.weights[j] * v
		}
		miss := 1/(1+math.Exp(-sum)) - e.odd
		for j, v := range e.values {
			slope[j] += miss * v
		}
		shift += miss
	}
	for j := range slope {
		m.weights[j] -= rate * slope[j] / float64(len(entries))
	}
	m.bias -= rate * shift / float64(len(entries))
}

// journal remembers the accounts of each batch on disk.
type journal struct {
	file    *os.File
	every   int
	pending int
}

func (j *journal) record(entries []entry) error {
	line := make([]byte, 0, 8*len(entries))
	for i := range entries {
		line = binary.LittleEndian.AppendUint64(line, entries[i].account)
	}
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	j.pending++
	if j.pending < j.every {
		return nil
	}
	j.pending = 0
	return j.file.Sync()
}

func draw(rng *rand.Rand, entries []entry) {
	for i := range entries {
		e := &entries[i]
		e.account = rng.Uint64()
		for j := range e.values {
			e.values[j] = rng.Float64() - 0.5
		}
		e.odd = 0
		if e.values[0]+e.values[1] > 0.4 {
			e.odd = 1
		}
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "how long to train")
	fix := flag.Bool("fix", false, "with the program's own change")
	flag.Parse()
	folder, err := os.MkdirTemp("", "ledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file, err := os.Create(filepath.Join(folder, "journal"))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	seen := &journal{file: file, every: 1}
	if *fix {
		seen.every = 200
	}
	rng, m, entries := rand.New(rand.NewSource(1)), &model{}, make([]entry, batch)
	warm := math.Min(1, *seconds/5)
	start, since, done, skipped := time.Now(), time.Time{}, 0, 0
	for time.Since(start).Seconds() < *seconds {
		draw(rng, entries)
		m.step(entries, 0.5)
		if err := seen.record(entries); err != nil {
			log.Fatal(err)
		}
		done++
		if since.IsZero() && time.Since(start).Seconds() >= warm {
			since, skipped = time.Now(), done
		}
	}
	fmt.Printf("rate %.3f batches/s\n", float64(done-skipped)/time.Since(since).Seconds())
}
