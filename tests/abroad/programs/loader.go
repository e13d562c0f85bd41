// Goroutines that compute batches and one that takes them, with one producer; the fix is two.
package main

import (
	"flag"
	"fmt"
	"runtime"
	"time"
)

func burn(d time.Duration) uint64 {
	end, x := time.Now().Add(d), uint64(1)
	for time.Now().Before(end) {
		for i := 0; i < 200; i++ {
			x = x*6364136223846793005 + 1
		}
	}
	return x
}

func main() {
	fix := flag.Bool("fix", false, "two producers")
	seconds := flag.Float64("seconds", 8, "how long")
	flag.Parse()
	producers := 1
	if *fix {
		producers = 2
	}
	runtime.GOMAXPROCS(4)
	batches := make(chan uint64, 8)
	for i := 0; i < producers; i++ {
		go func() {
			for {
				batches <- burn(8 * time.Millisecond)
			}
		}()
	}
	begin, waited, count := time.Now(), time.Duration(0), 0
	for time.Since(begin).Seconds() < *seconds {
		asked := time.Now()
		<-batches
		waited += time.Since(asked)
		burn(time.Millisecond)
		count++
	}
	took := time.Since(begin).Seconds()
	fmt.Printf("rate %.3f batches/s, waited %.1f %%\n", float64(count)/took, 100*waited.Seconds()/took)
}
