package cm

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigurationsThatAreRefused(t *testing.T) {
	ring, err := NewRing(Key{ID: 1, Secret: octets(0, 16)})
	require.NoError(t, err)
	for _, c := range []struct {
		want   string
		change func(c *Config)
	}{
		{"Config.Ring is nil", func(c *Config) { c.Ring = nil }},
		{"Config.Mode is no mode: 3", func(c *Config) { c.Mode = 3 }},
		{"modes that do not exist", func(c *Config) { c.Accept = 1 }},
		{"is no suite: 3", func(c *Config) { c.Suite = 3 }},
		{"is no suite: 1, 3", func(c *Config) { c.MinSuite = 3 }},
		{"Suite 1 is below MinSuite 2", func(c *Config) { c.MinSuite = SuiteX25519 }},
		{"Config.Skew is negative: -1ns", func(c *Config) { c.Skew = -1 }},
		{"Config.Skew is 640511h56m49.213693952s, above", func(c *Config) { c.Skew = maxSkew + 1 }},
		{"Config.CacheSize is negative: -1", func(c *Config) { c.CacheSize = -1 }},
		{"Config.Retain is negative: -1ns", func(c *Config) { c.Retain = -1 }},
		{"Config.Limits.Block is negative: -1ns", func(c *Config) { c.Limits.Block = -1 }},
		{"Config.Limits.FailureRate is negative: -1", func(c *Config) { c.Limits.FailureRate = -1 }},
		{"Config.Limits.Sources is negative: -1", func(c *Config) { c.Limits.Sources = -1 }},
		{"Config.Limits.FailureRate is not a number", func(c *Config) { c.Limits.FailureRate = math.NaN() }},
	} {
		cfg := Config{Ring: ring}
		c.change(&cfg)
		_, err := New(&cfg)
		require.ErrorContains(t, err, c.want)
	}
}

func TestDefaults(t *testing.T) {
	ring, err := NewRing(Key{ID: 1, Secret: octets(0, 16)})
	require.NoError(t, err)
	a, err := New(&Config{Ring: ring, AllowRev1: true})
	require.NoError(t, err)
	require.True(t, a.AllowRev1())
	require.Equal(t, ModeB, a.cfg.Mode)
	require.True(t, a.cfg.Accept.Has(ModeB))
	require.False(t, a.cfg.Accept.Has(ModeA))
	require.Equal(t, 30*time.Second, a.cfg.Skew)
	require.Equal(t, Limits{
		MaxHalfOpen: 4096, PerSource: 512, FailureRate: 20, FailureBurst: 100, Block: 10 * time.Second,
		Sources: 65536, HMACs: 20000, LogRate: 100, LogPerSource: 10,
	}, a.cfg.Limits)
}

func TestNames(t *testing.T) {
	for r := Reason(1); int(r) < reasons; r++ {
		require.NotEmpty(t, r.Stage())
		require.NotContains(t, r.String(), "reason ")
		require.NotZero(t, r.code())
	}
	require.Equal(t, "reason 200", Reason(200).String())
	require.Equal(t, "code 9", Code(9).String())
	require.Equal(t, "mode 0", Mode(0).String())
	require.Equal(t, "cm: stale time", (&Error{Reason: ReasonStale}).Error())
}

// TestTextsOfReasonsAreExplained: docs/troubleshooting.md explains each text of a log or an error in the row of its name.
func TestTextsOfReasonsAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "troubleshooting.md"))
	require.NoError(t, err)
	var words []string
	for r := Reason(1); int(r) < reasons; r++ {
		words = append(words, r.String())
	}
	for c := CodeRefused; c <= CodeApplication; c++ {
		words = append(words, c.String())
	}
	for _, word := range words {
		row := regexp.MustCompile("(?m)^\\| `cm\\..*`" + regexp.QuoteMeta(word) + "`")
		require.True(t, row.Match(page), "%s is in no row", word)
	}
}
