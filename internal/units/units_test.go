package units

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFormats(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0 B", 1: "1 B", 0.5: "0.50 B", 9.996: "10.0 B", 12.34: "12.3 B", 999.4: "999 B", 999.5: "1.00 kB", 1000: "1.00 kB", 12345: "12.3 kB", 999999: "1.00 MB",
		1.234e9: "1.23 GB", 18446744073709551615: "18.4 EB", 1e24: "1000000 EB",
	} {
		require.Equal(t, want, Octets(n))
	}
	require.Equal(t, "999", Count(999))
	require.Equal(t, "1.23 k", Count(1234))
	for d, want := range map[time.Duration]string{
		0: "", 512: "0.51 µs", 12345: "12.3 µs", 999499: "999 µs", 999500: "1.00 ms", 999499999: "999 ms", 999500000: "1.00 s", time.Minute: "60.00 s",
	} {
		require.Equal(t, want, Duration(d))
	}
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", time.Hour - 1: "59 min 59 s", time.Hour: "1 h 0 min", 24*time.Hour - 1: "23 h 59 min", 76 * time.Hour: "3 d 4 h",
	} {
		require.Equal(t, want, Uptime(d))
	}
}
