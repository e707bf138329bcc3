package solicit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigDefaults(t *testing.T) {
	require.Equal(t, Config{
		Min: 1 << 20, Max: 64 << 20, Start: 1 << 20, Weight: [2]int{4, 1}, MaxQueue: 4096,
	}, Config{}.withDefaults())
	for _, c := range []struct{ set, want [3]int64 }{
		{[3]int64{4 << 20, 0, 0}, [3]int64{4 << 20, 64 << 20, 4 << 20}},
		{[3]int64{128 << 20, 0, 0}, [3]int64{128 << 20, 128 << 20, 128 << 20}},
		{[3]int64{0, 64, 0}, [3]int64{64, 64, 64}},
		{[3]int64{0, 0, 128 << 20}, [3]int64{1 << 20, 128 << 20, 128 << 20}},
		{[3]int64{0, 0, 64}, [3]int64{64, 64 << 20, 64}},
		{[3]int64{64, 1 << 36, 4096}, [3]int64{64, 1 << 36, 4096}},
	} {
		cfg := Config{Min: c.set[0], Max: c.set[1], Start: c.set[2]}
		require.NoError(t, cfg.Check())
		d := cfg.withDefaults()
		require.Equal(t, c.want, [3]int64{d.Min, d.Max, d.Start})
	}
	require.Equal(t, [2]int{4, 7}, Config{Weight: [2]int{0, 7}}.withDefaults().Weight)
}

func TestConfigCheck(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{Fixed: 64}, ""},
		{Config{Fixed: 1 << 36, Weight: [2]int{1, 1024}, Strict: true, MaxQueue: 1 << 20}, ""},
		{Config{Dispatch: [2]time.Duration{1, 10 * time.Second}}, ""},
		{Config{Fixed: 63}, "solicit: Config.Fixed is 63, not 64 to 68719476736, or 0 for the default"},
		{Config{Fixed: -1}, "solicit: Config.Fixed is -1, not 64 to 68719476736, or 0 for the default"},
		{Config{Fixed: 1<<36 + 1}, "solicit: Config.Fixed is 68719476737, not 64 to 68719476736, or 0 for the default"},
		{Config{Fixed: 64, Max: 64}, "solicit: Config.Fixed is 64, and Min, Max or Start is set too"},
		{Config{Min: 1}, "solicit: Config.Min is 1, not 64 to 68719476736, or 0 for the default"},
		{Config{Max: 1}, "solicit: Config.Max is 1, not 64 to 68719476736, or 0 for the default"},
		{Config{Start: 1}, "solicit: Config.Start is 1, not 64 to 68719476736, or 0 for the default"},
		{Config{Min: 128, Start: 64}, "solicit: Config.Min, Start and Max are not in order: 128, 64, 67108864"},
		{Config{Start: 128, Max: 64}, "solicit: Config.Min, Start and Max are not in order: 64, 128, 64"},
		{Config{Min: 128, Max: 64}, "solicit: Config.Min, Start and Max are not in order: 128, 64, 64"},
		{Config{Weight: [2]int{1025, 0}}, "solicit: Config.Weight[Latency] is 1025, not 1 to 1024, or 0 for the default"},
		{Config{Weight: [2]int{0, -1}}, "solicit: Config.Weight[Bulk] is -1, not 1 to 1024, or 0 for the default"},
		{Config{Dispatch: [2]time.Duration{-1, 0}}, "solicit: Config.Dispatch[Latency] is -1ns, not 0 to 10s"},
		{Config{Dispatch: [2]time.Duration{0, time.Minute}}, "solicit: Config.Dispatch[Bulk] is 1m0s, not 0 to 10s"},
		{Config{MaxQueue: 1<<20 + 1}, "solicit: Config.MaxQueue is 1048577, not 1 to 1048576, or 0 for the default"},
	} {
		err := c.cfg.Check()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
		require.EqualValues(t, defaultMin, New(c.cfg, epoch).Stats().Limit, "it counts as the zero Config")
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "latency", Latency.String())
	require.Equal(t, "bulk", Bulk.String())
	require.Equal(t, "class 2", Class(2).String())
	require.Equal(t, "ok", OK.String())
	require.Equal(t, "nack", Nack.String())
	require.Equal(t, "timeout", Timeout.String())
	require.Equal(t, "failed", Failed.String())
	require.Equal(t, "outcome 4", Outcome(4).String())
}
