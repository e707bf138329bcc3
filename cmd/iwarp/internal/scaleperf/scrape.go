package scaleperf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// scrapeMark is how long a scrape may take, in seconds, for every scraped queue pairs, or for fewer.
const (
	scrapeMark = 1
	scraped    = 10000
)

// scrape scrapes the metrics of the RNIC once, by HTTP.
func (q *qps) scrape(ctx context.Context) (took time.Duration, err error) {
	x, err := q.set.NewScraper(ctx)
	if err != nil {
		return 0, err
	}
	took, err = x.Scrape(ctx)
	return took, errors.Join(err, x.Close())
}

// scrapes scrapes both processes of a set, in turn, and compares the slower one with the mark.
func (b *bench) scrapes(n int, c *set) error {
	var medians [2]float64
	for i, node := range []*node{c.client, c.server} {
		var all []float64
		for range b.opts.Pairs {
			r, err := node.do(order{Scrape: true})
			if err != nil {
				return fmt.Errorf("scrape: %w", err)
			}
			all = append(all, r.Elapsed.Seconds())
		}
		medians[i] = stats.Median(all)
	}
	b.Marks.Most(fmt.Sprintf("%d queue pairs: scrape of the metrics", n), max(medians[0], medians[1]), float64(scrapeMark*(1+(n-1)/scraped)), " s")
	b.Note("%d queue pairs: a scrape of the client takes %.1f ms, and one of the server %.1f ms", n, medians[0]*1e3, medians[1]*1e3)
	return nil
}
