package exporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestScraper(t *testing.T) {
	s := NewSet()
	r, err := iwarp.Open(nil)
	require.NoError(t, err)
	s.Add(r)
	x, err := s.NewScraper(t.Context())
	require.NoError(t, err)
	took, err := x.Scrape(t.Context())
	require.NoError(t, err)
	require.Positive(t, took)

	require.Eventually(t, func() bool {
		stop := x.Every(time.Millisecond)
		time.Sleep(20 * time.Millisecond)
		n, err := stop()
		return err == nil && n > 0
	}, time.Minute, time.Millisecond)
	n, err := x.Every(time.Hour)()
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, s.Close(r))
	_, err = x.Scrape(t.Context())
	require.ErrorContains(t, err, "0 octets", "there is nothing to tell")

	require.NoError(t, x.Close())
	_, err = x.Scrape(t.Context())
	require.Error(t, err)
	require.Eventually(t, func() bool {
		stop := x.Every(time.Millisecond)
		time.Sleep(20 * time.Millisecond)
		_, err := stop()
		return err != nil
	}, time.Minute, time.Millisecond)
}
