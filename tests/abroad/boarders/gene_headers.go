// Reads headers and sequences of genes from FASTA-like text in a goroutine; the main goroutine learns, from the counts of letters, what kind each is.
//
// go build gene_headers.go
// -fix (or --fix): the pattern of a header is made once.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	genes  = 400
	batch  = 32
	inputs = 6
	shape  = `^>(?P<source>[a-z]{2,4})\|(?P<accession>[A-Z]{1,2}[0-9]{5,8}(\.[0-9]+)?)\|(?P<name>[A-Za-z0-9_\-]{2,40})\s+(OS=(?P<species>[A-Za-z ]{3,60}))?\s*(len=(?P<length>[0-9]{1,6}))?\s*kind=(?P<kind>[01])$`
)

type example struct {
	features [inputs]float64
	kind     float64
}

func write() []string {
	random := rand.New(rand.NewSource(4))
	records := make([]string, genes)
	for i := range records {
		kind := i % 2
		var sequence strings.Builder
		for j := 0; j < 300; j++ {
			sequence.WriteByte("ACGTGC"[random.Intn(4+2*kind)])
		}
		records[i] = fmt.Sprintf(">sp|P%06d.1|GENE_%d OS=Danio rerio len=300 kind=%d\n%s", i, i, kind, sequence.String())
	}
	return records
}

func read(record string, pattern *regexp.Regexp) example {
	header, sequence, _ := strings.Cut(record, "\n")
	if pattern == nil {
		pattern = regexp.MustCompile(shape)
	}
	parts := pattern.FindStringSubmatch(header)
	var out example
	out.kind, _ = strconv.ParseFloat(parts[pattern.SubexpIndex("kind")], 64)
	length, _ := strconv.ParseFloat(parts[pattern.SubexpIndex("length")], 64)
	for k, letter := range []string{"A", "C", "G", "T"} {
		out.features[k] = float64(strings.Count(sequence, letter)) / length
	}
	out.features[4], out.features[5] = length/1000, 1
	return out
}

func load(records []string, pattern *regexp.Regexp, batches chan<- []example) {
	random := rand.New(rand.NewSource(9))
	for {
		examples := make([]example, batch)
		for i := range examples {
			examples[i] = read(records[random.Intn(len(records))], pattern)
		}
		batches <- examples
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "how long")
	fix := flag.Bool("fix", false, "with the program's own change")
	flag.Parse()
	var pattern *regexp.Regexp
	if *fix {
		pattern = regexp.MustCompile(shape)
	}
	batches := make(chan []example, 4)
	go load(write(), pattern, batches)
	var weights [inputs]float64
	start, warm := time.Now(), math.Min(1, *seconds/5)
	count, skipped, began := 0, -1, 0.0
	for time.Since(start).Seconds() < *seconds {
		examples := <-batches
		for round := 0; round < 8; round++ {
			for _, one := range examples {
				sum := 0.0
				for k, value := range one.features {
					sum += weights[k] * value
				}
				wrong := 1/(1+math.Exp(-sum)) - one.kind
				for k, value := range one.features {
					weights[k] -= 0.05 * wrong * value
				}
			}
		}
		count++
		if skipped < 0 && time.Since(start).Seconds() >= warm {
			skipped, began = count, time.Since(start).Seconds()
		}
	}
	fmt.Printf("rate %.3f batches/s\n", float64(count-skipped)/(time.Since(start).Seconds()-began))
}
