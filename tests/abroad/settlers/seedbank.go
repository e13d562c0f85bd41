// Seed bank: will a lot germinate? Logistic regression over gzipped drying-room records, one file a lot.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const readings, lots, perBatch = 512, 400, 8

type record struct {
	values []float32
	label  float64
}

func writeLots(folder string) {
	rng := rand.New(rand.NewSource(4))
	for lot := 0; lot < lots; lot++ {
		values := make([]float32, readings)
		for i := range values {
			values[i] = float32(math.Round(rng.NormFloat64()*8)/8 + float64(lot%2)*0.25)
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		binary.Write(zip, binary.LittleEndian, values)
		zip.Close()
		os.WriteFile(filepath.Join(folder, fmt.Sprintf("lot%04d.gz", lot)), packed.Bytes(), 0o600)
	}
}

func readLot(path string, inProcess bool) ([]byte, error) {
	if !inProcess {
		return exec.Command("gzip", "-dc", path).Output()
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zip)
}

func loadBatches(folder string, inProcess bool, batches chan<- []record) {
	rng := rand.New(rand.NewSource(9))
	for {
		batch := make([]record, 0, perBatch)
		for len(batch) < perBatch {
			lot := rng.Intn(lots)
			raw, err := readLot(filepath.Join(folder, fmt.Sprintf("lot%04d.gz", lot)), inProcess)
			if err != nil {
				close(batches)
				return
			}
			values := make([]float32, readings)
			for i := range values {
				values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
			batch = append(batch, record{values, float64(lot % 2)})
		}
		batches <- batch
	}
}

func trainStep(weights []float64, batch []record) {
	for pass := 0; pass < 20; pass++ {
		for _, lot := range batch {
			score := 0.0
			for i, value := range lot.values {
				score += weights[i] * float64(value)
			}
			miss := 1/(1+math.Exp(-score)) - lot.label
			for i, value := range lot.values {
				weights[i] -= 0.001 * miss * float64(value)
			}
		}
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	flag.Parse()
	folder, err := os.MkdirTemp("", "seedbank")
	if err != nil {
		log.Fatal(err)
	}
	writeLots(folder)
	defer os.RemoveAll(folder)
	batches := make(chan []record, 4)
	go loadBatches(folder, *fix, batches)
	weights := make([]float64, readings)
	warm := math.Min(1, *seconds/5)
	var first, since time.Time
	count, skipped := 0, 0
	for batch := range batches {
		trainStep(weights, batch)
		now := time.Now()
		count++
		if first.IsZero() {
			first = now
		}
		if since.IsZero() && now.Sub(first).Seconds() >= warm {
			since, skipped = now, count
		}
		if now.Sub(first).Seconds() >= *seconds {
			fmt.Printf("rate %.3f batches/s\n", float64(count-skipped)/now.Sub(since).Seconds())
			break
		}
	}
}
