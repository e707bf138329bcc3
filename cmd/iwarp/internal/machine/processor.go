package machine

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/goiwarp/iwarp/internal/crc32c"
)

func system() []Fact {
	return []Fact{
		{Group: "system", Name: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH},
		{Group: "system", Name: "Go", Value: runtime.Version()},
	}
}

func processor() []Fact {
	fact := Fact{Group: "processor", Name: "CRC32c", Value: fmt.Sprintf("%s, %.1f GB/s for one core", instructions(), digestSpeed()/1e9)}
	if instructions() == tables {
		fact.Lacks, fact.Remedy = true, "this processor computes digests slowly: MPAOptions.NoCRC, if both sides agree, does without"
	}
	return []Fact{
		{Group: "processor", Name: "cores", Value: strconv.Itoa(runtime.NumCPU()) + ", of which Go uses " + strconv.Itoa(runtime.GOMAXPROCS(0))},
		fact,
	}
}

// tables names how a CRC32c is computed without an instruction for it.
const tables = "tables"

// instructions returns the names of the instructions by which a CRC32c is computed.
func instructions() string {
	var all []string
	if cpu.X86.HasSSE42 || cpu.ARM64.HasCRC32 || runtime.GOARCH == "s390x" || runtime.GOARCH == "ppc64le" {
		all = append(all, "by instruction")
	}
	if cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX512F {
		all = append(all, "AVX-512 VPCLMULQDQ")
	}
	if all == nil {
		return tables
	}
	return strings.Join(all, ", ")
}

// digestSpeed returns the number of octets whose CRC32c is computed in a second.
func digestSpeed() float64 {
	b := make([]byte, 1<<20)
	crc32c.Checksum(b)
	const rounds = 4
	began := time.Now()
	for range rounds {
		crc32c.Checksum(b)
	}
	return float64(rounds*len(b)) / max(time.Since(began), time.Nanosecond).Seconds()
}
