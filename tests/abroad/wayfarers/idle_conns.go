// A loader goroutine asks a feature service for the twelve rows of each batch at once, over HTTP; the main goroutine trains.
// The service checks each new connection for 25 ms. The client keeps two idle connections (Go's default), so ten of twelve are new for each batch.
// --fix: MaxIdleConnsPerHost 2 -> 12. (The service is this program again, as a child.)
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	rows  = 12
	width = 256
)

// checked is a connection whose first read waits for the check of its caller.
type checked struct {
	net.Conn
	once sync.Once
}

func (c *checked) Read(into []byte) (int, error) {
	c.once.Do(func() { time.Sleep(25 * time.Millisecond) })
	return c.Conn.Read(into)
}

type door struct{ net.Listener }

func (d door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &checked{Conn: conn}, nil
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().String())
	go func() { // ends with the parent
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	http.Serve(door{listener}, http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		id, _ := strconv.Atoi(request.URL.Query().Get("id"))
		time.Sleep(2 * time.Millisecond)
		row := make([]byte, 4*width)
		for i := 0; i < width; i++ {
			binary.LittleEndian.PutUint32(row[4*i:], math.Float32bits(float32((id*31+i*17)%101)/101))
		}
		out.Write(row)
	}))
}

func fetch(client *http.Client, address string, id int, into []float32) {
	answer, err := client.Get(fmt.Sprintf("http://%s/row?id=%d", address, id))
	if err != nil {
		return
	}
	defer answer.Body.Close()
	row, _ := io.ReadAll(answer.Body)
	for i := 0; i+4 <= len(row); i += 4 {
		into[i/4] = math.Float32frombits(binary.LittleEndian.Uint32(row[i:]))
	}
}

func load(client *http.Client, address string, batches chan<- [][]float32, over <-chan struct{}) {
	for id := 0; ; id += rows {
		batch := make([][]float32, rows)
		var all sync.WaitGroup
		for i := range batch {
			batch[i] = make([]float32, width)
			all.Add(1)
			go func(i int) {
				defer all.Done()
				fetch(client, address, id+i, batch[i])
			}(i)
		}
		all.Wait()
		select {
		case batches <- batch:
		case <-over:
			return
		}
	}
}

// step is some passes of a logistic regression.
func step(weights []float32, batch [][]float32) {
	for pass := 0; pass < 20; pass++ {
		for i, row := range batch {
			var sum float32
			for j, value := range row {
				sum += weights[j] * value
			}
			slope := float32(1/(1+math.Exp(-float64(sum)))) - float32(i%2)
			for j, value := range row {
				weights[j] -= 1e-3 * slope * value
			}
		}
	}
}

func main() {
	seconds := flag.Float64("seconds", 6, "")
	fix := flag.Bool("fix", false, "")
	service := flag.Bool("service", false, "be the service")
	flag.Parse()
	if *service {
		serve()
		return
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	child := exec.Command(self, "--service")
	input, _ := child.StdinPipe()
	output, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		panic(err)
	}
	line, _ := bufio.NewReader(output).ReadString('\n')
	address := strings.TrimSpace(line)

	transport := http.DefaultTransport.(*http.Transport).Clone()
	if *fix {
		transport.MaxIdleConnsPerHost = rows
	}
	batches, over := make(chan [][]float32, 2), make(chan struct{})
	go load(&http.Client{Transport: transport}, address, batches, over)

	weights := make([]float32, width)
	var first, since, last time.Time
	warm := math.Min(1, *seconds/5)
	count, skipped := 0, 0
	for batch := range batches {
		step(weights, batch)
		last = time.Now()
		count++
		if first.IsZero() {
			first = last
		}
		if since.IsZero() && last.Sub(first).Seconds() >= warm {
			since, skipped = last, count
		}
		if last.Sub(first).Seconds() >= *seconds {
			break
		}
	}
	close(over)
	fmt.Printf("rate %.3f batches/s\n", float64(count-skipped)/math.Max(last.Sub(since).Seconds(), 1e-9))
	input.Close()
	child.Wait()
}
