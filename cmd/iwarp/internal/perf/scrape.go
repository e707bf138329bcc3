package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
)

// leastScraped is the part of its speed that a workload must keep while the metrics of both processes are scraped.
const leastScraped = 0.98

// unscraped is the baseline of a workload whose processes are scraped: the same workload on the same connections, without scrapes.
const unscraped = "unscraped"

// A scrapeCase measures a workload while the metrics of both processes are scraped, and without that, in turn.
type scrapeCase struct {
	w     workload
	every time.Duration
	goal  goal
}

// scrapeCases returns a scrapeCase for each workload of the library in a suite.
func scrapeCases(suite []measurement, every time.Duration) (cases []measurement) {
	for _, m := range suite {
		c, ok := m.(*comparison)
		if !ok || c.subject.Kind != "iwarp" {
			continue
		}
		g := c.goals[0]
		name := "scraped_" + g.name
		if g.most {
			g = ratioAtMost(name, g.metric, 1/leastScraped)
		} else {
			g = ratioAtLeast(name, g.metric, leastScraped)
		}
		cases = append(cases, &scrapeCase{c.subject, every, g})
	}
	return cases
}

func (c *scrapeCase) cases() []goal { return []goal{c.goal} }

// measure alternates both kinds of run on one connection. The runs are long enough for two scrapes.
func (c *scrapeCase) measure(p pairing, r *remote, cc string) (rows []row, err error) {
	w := c.w
	w.CC = cc
	a, err := openArm(r, w, max(p.span, 2*c.every))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	mine, err := exported.NewScraper(context.Background())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mine.Close()) }()
	var pairs []pair
	for i := range p.pairs {
		if p.begin != nil {
			p.begin(i)
		}
		var one pair
		if one.subject, err = c.run(a, mine); err != nil {
			return nil, err
		}
		if one.baseline, err = a.run(); err != nil {
			return nil, err
		}
		pairs = append(pairs, one)
	}
	return []row{summarize(c.goal.name, c.goal.metric, unscraped, pairs)}, nil
}

// run does a run in which both processes are scraped.
func (c *scrapeCase) run(a *arm, mine *exporter.Scraper) (*sample, error) {
	if _, err := a.r.do(request{Scrape: &scrapeOrder{Every: c.every}}); err != nil {
		return nil, err
	}
	stop := mine.Every(c.every)
	s, err := a.run()
	n, serr := stop()
	theirs, rerr := a.r.do(request{Scrape: new(scrapeOrder)})
	if err := errors.Join(err, serr, rerr); err != nil {
		return nil, err
	}
	if n == 0 || theirs.Scrapes == 0 {
		return nil, fmt.Errorf("%d and %d scrapes in %v, one at least", n, theirs.Scrapes, s.elapsed)
	}
	return s, nil
}

// scrape begins or ends scraping this process for a client.
func (k *session) scrape(o *scrapeOrder) (n int, err error) {
	n, err = k.unscrape()
	if err != nil || o.Every <= 0 {
		return n, err
	}
	if k.scraper, err = exported.NewScraper(context.Background()); err != nil {
		return 0, err
	}
	k.unscraped = k.scraper.Every(o.Every)
	return 0, nil
}

// unscrape ends the scraping, and returns how many scrapes there were.
func (k *session) unscrape() (n int, err error) {
	if k.scraper == nil {
		return 0, nil
	}
	n, err = k.unscraped()
	err = errors.Join(err, k.scraper.Close())
	k.scraper = nil
	return n, err
}
