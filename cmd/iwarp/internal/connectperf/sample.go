package connectperf

import (
	"runtime"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A sample is one result of a point.
type sample struct {
	point
	Total  time.Duration `json:"total"` // until the last connection was ready
	P50    time.Duration `json:"p50"`   // of each
	P99    time.Duration `json:"p99"`
	Close  time.Duration `json:"close"`  // until all had ended
	Client time.Duration `json:"client"` // processor time
	Server time.Duration `json:"server"`
	Read   time.Duration `json:"read"` // of 8 octets

	Peak       uint64 `json:"peak"` // resident memory of the client, at most
	Kept       uint64 `json:"kept"` // resident memory after a collection, with the QPs
	ServerPeak uint64 `json:"server_peak"`
	Goroutines int    `json:"goroutines"` // at most
}

func (s *sample) cpu() time.Duration { return s.Client + s.Server }

// passing returns the memory that was needed only during the set-ups, in octets.
func (s *sample) passing() float64 { return float64(s.Peak) - float64(min(s.Kept, s.Peak)) }

// each returns a time divided by the number of connections.
func (s *sample) each(d time.Duration) time.Duration { return d / time.Duration(s.N) }

// A goroutineWatch samples the number of goroutines.
type goroutineWatch struct {
	end  chan struct{}
	most chan int
}

func watchGoroutines() *goroutineWatch {
	w := &goroutineWatch{make(chan struct{}), make(chan int)}
	go func() {
		most := 0
		t := time.NewTicker(5 * time.Millisecond)
		defer t.Stop()
		for {
			most = max(most, runtime.NumGoroutine())
			select {
			case <-t.C:
			case <-w.end:
				w.most <- most
				return
			}
		}
	}()
	return w
}

// stop returns the largest number.
func (w *goroutineWatch) stop() int {
	close(w.end)
	return <-w.most
}

// samples are the samples of one point.
type samples []*sample

// median returns the median of value over the samples.
func (l samples) median(value func(*sample) float64) float64 {
	var all []float64
	for _, s := range l {
		all = append(all, value(s))
	}
	return stats.Median(all)
}

// ratio returns the median of the ratios of pairs: of value for each sample of l to value for the sample
// of base that was taken beside it.
func (l samples) ratio(base samples, value func(*sample) float64) float64 {
	var all []float64
	for i, s := range l {
		all = append(all, value(s)/max(value(base[i]), 1))
	}
	return stats.Median(all)
}

// less returns the median of the differences of pairs.
func (l samples) less(base samples, value func(*sample) float64) float64 {
	var all []float64
	for i, s := range l {
		all = append(all, value(s)-value(base[i]))
	}
	return stats.Median(all)
}

// Values of samples.
func p99Of(s *sample) float64    { return float64(s.P99) }
func totalOf(s *sample) float64  { return float64(s.Total) }
func cpuOf(s *sample) float64    { return float64(s.cpu()) }
func clientOf(s *sample) float64 { return micros(s.each(s.Client)) }
func serverOf(s *sample) float64 { return micros(s.each(s.Server)) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
