package commitperf

import (
	"sync"
	"sync/atomic"
	"time"
)

// rateOf calls f for all ends during span, and counts.
func rateOf(ends []*end, span time.Duration, f func(*end) error) (perSecond float64, ops int, err error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	began := time.Now()
	for _, e := range ends {
		all.Go(func() {
			for time.Since(began) < span && failed.Load() == nil {
				if err := f(e); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), int(done.Load()), nil
}
