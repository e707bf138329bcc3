package perf

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// TestScrapedSuite: a row for each workload, whose baseline is the same workload without scrapes. On a busy machine a scrape may not end
// within so short a run, which is an error of its case: then the test uses longer intervals.
func TestScrapedSuite(t *testing.T) {
	var out, errs bytes.Buffer
	for every := 20 * time.Millisecond; every < 10*time.Second; every *= 2 {
		out.Reset()
		errs.Reset()
		args := []string{"--suite", "standard", "--case", "write_4k_d32,pingpong_64b,copies", "--scrape", every.String(), "--span", "1ms", "--pairs", "2", "--json"}
		if err := cli.Run(t.Context(), Command(), args, cli.Streams{Out: &out, Err: &errs}); err != nil {
			require.ErrorIs(t, err, marks.ErrMissed)
		}
		if !strings.Contains(errs.String(), "one at least") {
			break
		}
	}
	require.Empty(t, errs.String())
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, rows, 2)
	for i, name := range []string{"scraped_write_4k_d32", "scraped_pingpong_64b"} {
		require.Contains(t, rows[i], `"case":"`+name+`"`)
		require.Contains(t, rows[i], `"baseline":"unscraped"`)
		require.NotContains(t, rows[i], `"ratio":null`)
	}
}

// TestScrapeCasesOfTheStandardSuite: targets are the same for each, in the direction of its metric.
func TestScrapeCasesOfTheStandardSuite(t *testing.T) {
	cases := scrapeCases(standard, time.Second)
	require.Greater(t, len(cases), 30)
	for _, m := range cases {
		g := m.cases()[0]
		require.Contains(t, []string{"throughput", "rate", "p50"}, g.metric.name)
		require.Equal(t, g.metric.name == "p50", g.most, g.name)
		require.True(t, g.ratio)
		if !g.most {
			require.InDelta(t, 0.98, g.bound, 0)
		}
	}
}

// TestRunWithoutAScrapeIsAnError: its ratio would be meaningless.
func TestRunWithoutAScrapeIsAnError(t *testing.T) {
	r := startServer(t)
	w := workload{Kind: "iwarp", Op: opWrite, Size: 4096, Depth: 8}
	a, err := openArm(r, w, time.Millisecond)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.close()) }()
	mine, err := exported.NewScraper(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, mine.Close()) }()
	_, err = (&scrapeCase{w: w, every: time.Hour}).run(a, mine)
	require.ErrorContains(t, err, "0 and 0 scrapes")
	_, err = r.do(request{Scrape: &scrapeOrder{Every: time.Hour}}) // the end of the session ends it
	require.NoError(t, err)
}
