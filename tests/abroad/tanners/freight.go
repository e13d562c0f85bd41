// Estimates the unloading time of containers from their customs records.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"time"
)

const (
	batchSize = 128
	fields    = 6
)

type crates struct{ rows [][fields + 1]float64 }

var names = [fields + 1]string{"weight", "volume", "boxes", "draught", "wind", "cranes", "minutes"}

// writeRecords makes the harbour's records, one JSON object a line.
func writeRecords(path string) error {
	lines := bytes.Buffer{}
	for i := 0; i < 20000; i++ {
		record := map[string]any{"ship": fmt.Sprintf("MV %05d", i), "goods": []string{"coffee", "tyres", "paper"}}
		minutes := 0.0
		for f, name := range names[:fields] {
			value := rand.Float64()
			record[name] = value
			minutes += value * float64(f+1)
		}
		record["minutes"] = minutes
		line, _ := json.Marshal(record)
		fmt.Fprintf(&lines, "%s\n", line)
	}
	return os.WriteFile(path, lines.Bytes(), 0o644)
}

// readManifests brings the records to the quay in batches, year after year.
func readManifests(path string, quay chan<- crates, keep bool) {
	var kept []crates
	for {
		file, err := os.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		scanner, batch := bufio.NewScanner(file), crates{}
		for scanner.Scan() {
			var record map[string]any
			if err := json.Unmarshal(scanner.Bytes(), &record); err != nil {
				log.Fatal(err)
			}
			var row [fields + 1]float64
			for f, name := range names {
				row[f] = record[name].(float64)
			}
			if batch.rows = append(batch.rows, row); len(batch.rows) == batchSize {
				quay <- batch
				kept, batch = append(kept, batch), crates{}
			}
		}
		file.Close()
		for keep {
			for _, batch := range kept {
				quay <- batch
			}
		}
		kept = nil
	}
}

type estimate [fields]float64

func (e *estimate) step(batch crates) {
	for _, row := range batch.rows {
		miss := -row[fields]
		for f := range e {
			miss += e[f] * row[f]
		}
		for f := range e {
			e[f] -= 0.01 * miss * row[f]
		}
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "how long to train")
	fix := flag.Bool("fix", false, "with the program's own change")
	flag.Parse()
	folder, err := os.MkdirTemp("", "freight")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	records := filepath.Join(folder, "records.jsonl")
	if err := writeRecords(records); err != nil {
		log.Fatal(err)
	}
	quay := make(chan crates, 16)
	go readManifests(records, quay, *fix)
	minutes := &estimate{}
	start, counted := time.Now(), 0
	for elapsed := 0.0; elapsed < *seconds; elapsed = time.Since(start).Seconds() {
		minutes.step(<-quay)
		if elapsed >= 1 {
			counted++
		}
	}
	fmt.Printf("rate %.3f batches/s\n", float64(counted)/(*seconds-1))
}
