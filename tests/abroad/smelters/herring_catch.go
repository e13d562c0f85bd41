// Learns the day's herring catch from buoys' records, and journals every prediction for the auditors.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const buoys, batch, records = 12, 64, 20000

type Record struct {
	Features [buoys]float64
	Catch    float64
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func writeRecords(path string) {
	out := must(os.Create(path))
	defer out.Close()
	w := bufio.NewWriter(out)
	for i := 0; i < records; i++ {
		sum := 0.0
		for b := 0; b < buoys; b++ {
			v := rand.NormFloat64()
			sum += v * float64(b%4)
			fmt.Fprintf(w, "%.4f,", v)
		}
		fmt.Fprintf(w, "%.4f\n", sum)
	}
	w.Flush()
}

func readRecords(path string, out chan<- []Record) {
	for {
		in := must(os.Open(path))
		rows := csv.NewReader(bufio.NewReader(in))
		rows.ReuseRecord = true
		group := make([]Record, 0, batch)
		for {
			row, err := rows.Read()
			if err != nil {
				break
			}
			var r Record
			for b := range r.Features {
				r.Features[b], _ = strconv.ParseFloat(row[b], 64)
			}
			r.Catch, _ = strconv.ParseFloat(row[buoys], 64)
			if group = append(group, r); len(group) == batch {
				out <- group
				group = make([]Record, 0, batch)
			}
		}
		in.Close()
	}
}

type Journal struct {
	file      *os.File
	everyLine bool
}

func (j *Journal) Note(catch, guess float64) error {
	err := binary.Write(j.file, binary.LittleEndian, [2]float64{catch, guess})
	if err == nil && j.everyLine {
		err = j.file.Sync()
	}
	return err
}

type Model struct{ weights [buoys]float64 }

func (m *Model) Learn(group []Record, journal *Journal) (loss float64) {
	var slope [buoys]float64
	for _, r := range group {
		guess := 0.0
		for b, v := range r.Features {
			guess += m.weights[b] * v
		}
		must(0, journal.Note(r.Catch, guess))
		for b, v := range r.Features {
			slope[b] += (guess - r.Catch) * v
		}
		loss += (guess - r.Catch) * (guess - r.Catch)
	}
	for b := range slope {
		m.weights[b] -= 0.01 * slope[b] / batch
	}
	return loss / batch
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "flush the journal once for each batch")
	flag.Parse()
	folder := must(os.MkdirTemp("", "herring"))
	defer os.RemoveAll(folder)
	writeRecords(filepath.Join(folder, "buoys.csv"))
	journal := &Journal{must(os.Create(filepath.Join(folder, "journal.bin"))), !*fix}
	groups := make(chan []Record, 8)
	go readRecords(filepath.Join(folder, "buoys.csv"), groups)
	var model Model
	loss := model.Learn(<-groups, journal)
	first := time.Now()
	start, batches, skipped := first, 0, -1
	for time.Since(first).Seconds() < *seconds {
		loss = model.Learn(<-groups, journal)
		if *fix {
			journal.file.Sync()
		}
		batches++
		if skipped < 0 && time.Since(first).Seconds() >= min(1, *seconds/5) {
			start, skipped = time.Now(), batches
		}
	}
	fmt.Printf("loss %.4f\nrate %.3f batches/s\n", loss, float64(batches-skipped)/time.Since(start).Seconds())
}
