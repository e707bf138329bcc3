package arch

// A rule says what the packages below one path may import.
type rule struct {
	ours  []string // packages of this module, by path below it; "internal" means everything below internal
	tests []string // what test files may import in addition
	third []string // third-party modules or packages that non-test code may use
}

// testLibraries are the libraries that the tests of every package may import.
var testLibraries = []string{
	"github.com/stretchr/testify",
	"github.com/anishathalye/porcupine",
	"github.com/cockroachdb/datadriven",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
	"golang.org/x/net",
	"golang.org/x/sys",
}

// table is the import graph, from the bottom up. Every package must be in it, except programs (see programs). The root
// package is ".".
var table = map[string]rule{
	"stag":      {ours: []string{"internal"}},
	"transport": {ours: []string{"internal"}, third: []string{"golang.org/x/sys"}},
	// The window over inbound transfers knows none of the transfers.
	"solicit": {ours: []string{"internal/names"}},

	// DDP over SCTP stands beside MPA, on the contract.
	"transport/sctp": {ours: []string{"transport", "internal"}},
	// Only the user-space back end knows pion: a network that works everywhere justifies an SCTP that others maintain.
	// It imports pion's logger only to silence it.
	"transport/sctpudp": {
		ours:  []string{"transport", "transport/sctp", "internal"},
		third: []string{"github.com/pion/sctp", "github.com/pion/logging"},
	},
	// Only the kernel's back end knows the library of its sockets.
	"transport/sctpkernel": {
		ours:  []string{"transport", "transport/sctp", "internal"},
		third: []string{"github.com/ishidawataru/sctp", "golang.org/x/sys"},
	},

	"ddp": {ours: []string{"stag", "transport", "internal"}},
	"mpa": {ours: []string{"transport", "internal"}, tests: []string{"ddp", "stag"}},

	"rdmap": {ours: []string{"ddp", "stag", "transport", "internal"}, tests: []string{"mpa"}},

	"commit": {ours: []string{"rdmap", "stag", "transport", "internal"}, tests: []string{"ddp", "."}, third: []string{"golang.org/x/sys"}},

	".": {
		ours:  []string{"commit", "counters", "rdmap", "mpa", "ddp", "solicit", "stag", "transport", "internal"},
		tests: []string{"cm"},
		third: []string{"golang.org/x/sys"},
	},

	// Comparison by == of values of any type.
	"internal/equal": {},
	// The server name in a TLS configuration.
	"internal/servername": {},
	// Numbers as text.
	"internal/units": {},
	// Detection of HTTP requests that another site has caused.
	"internal/rebinding": {},
	// Statistics as plain values.
	"counters": {ours: []string{"rdmap"}},
	// It adds up the statistics of QPs.
	"internal/tally": {ours: []string{"commit", "counters", "rdmap", "transport", "internal"}},

	// It exports statistics. Except for programs, only this package knows Prometheus.
	"metrics": {
		ours:  []string{".", "cm", "counters", "rma", "solicit", "internal/equal"},
		tests: []string{"stag", "internal/rnictest"},
		third: []string{"github.com/prometheus/client_golang"},
	},

	// It makes spans of the verbs' operations. Only this package knows OpenTelemetry.
	"tracing": {
		ours:  []string{".", "commit", "rma", "stag", "transport", "internal/setup"},
		tests: []string{"cm", "counters", "internal/rnictest", "internal/selfsigned", "internal/wiretest"},
		third: []string{"go.opentelemetry.io/otel"},
	},

	// It shows statistics to browsers and to iwarp top. Except for programs, only this package has an HTTP handler.
	"monitor": {
		ours:  []string{".", "counters", "transport", "internal/rebinding", "internal/units"},
		tests: []string{"cm", "stag", "internal/rnictest"},
	},

	// Connection set-up, on the verbs, which know its authentication only through an interface.
	"cm": {ours: []string{".", "transport", "internal/bucket", "internal/closed", "internal/logkey", "internal/lru", "internal/names", "internal/quota", "internal/recent", "internal/servername"}, tests: []string{"stag", "internal"}},

	// The keys of operations on regions. They know no connection: they take what they need of one as a function.
	"regionkey": {ours: []string{"internal"}},
	// The messages of these operations as octets.
	"rma/internal/wire": {ours: []string{"regionkey", "rma/internal/op"}, tests: []string{"internal/octettest"}},

	// One-sided operations, on the verbs, which also supply the identity and the keys of a connection.
	"rma": {
		ours:  []string{".", "stag", "regionkey", "solicit", "rma/internal", "internal/bucket", "internal/closed", "internal/logkey", "internal/lru", "internal/names", "internal/quota", "internal/recent"},
		tests: []string{"cm", "transport", "internal"},
	},
	// The state machines of one-sided operations import nothing and have no side effects.
	"rma/internal/op": {},

	// Stream sockets like those of librdmacm, on the public verbs.
	"rsocket": {
		ours:  []string{".", "stag", "rsocket/internal", "internal/blockcopy", "internal/endwait", "internal/sockerr"},
		tests: []string{"cm", "internal"},
	},
	// The octets of stream sockets, and their protocol, which has no side effects either.
	"rsocket/internal/wire":   {tests: []string{"internal/octettest"}},
	"rsocket/internal/stream": {ours: []string{"rsocket/internal/wire"}},
	// RPC over RDMA, on the verbs: its octets, and the placement of its data.
	"rpcrdma":                   {ours: []string{".", "stag", "rpcrdma/internal", "internal/blockcopy", "internal/closed"}, tests: []string{"solicit", "transport", "internal/octettest", "internal/raceorder", "internal/wiretest"}},
	"rpcrdma/internal/wire":     {tests: []string{"rpcrdma/internal/captures", "internal/octettest"}},
	"rpcrdma/internal/plan":     {ours: []string{"rpcrdma/internal/wire"}, tests: []string{"rpcrdma/internal/captures"}},
	"rpcrdma/internal/captures": {third: []string{"github.com/stretchr/testify"}},

	// One connection of a queue pair, below the verbs.
	"internal/qpconn": {ours: []string{"ddp", "rdmap", "stag", "transport", "internal"}, third: []string{"golang.org/x/sys"}},

	// How regions become durable.
	"internal/durable": {ours: []string{"commit", "stag", "internal"}},

	// One row covers internal, except for the packages below.
	"internal": {ours: []string{"internal/lockorder"}, third: []string{"golang.org/x/sys"}},
	// Its memory is a ring.
	"internal/postqueue": {ours: []string{"internal/lockorder", "internal/ring"}},
	// It asks whether the caller is inside a Buffer.
	"internal/endwait": {ours: []string{"stag"}},
	// What a failed negotiation means is a Code of the contract.
	"internal/enhanced": {ours: []string{"transport"}},
	// It sets connections up, below the verbs.
	"internal/setup": {ours: []string{"counters", "transport", "mpa", "internal"}},
	// What authenticates a connection shapes its set-up, and its stream.
	"internal/authn": {ours: []string{"transport", "mpa", "rdmap", "internal"}},
	// It makes the Reads of streams wait for a window.
	"internal/soliciting": {ours: []string{"rdmap", "solicit", "transport", "internal"}},
	// It decodes what every protocol of the library sends, and knows no verbs.
	"internal/dump": {
		ours:  []string{"commit", "ddp", "mpa", "rdmap", "transport", "transport/sctp", "internal/crc32c", "internal/enhanced", "internal/pcap", "examples/nvme/capsule"},
		tests: []string{".", "stag", "internal/octettest"},
	},
	// Both tools read the list of planted defects.
	"internal/conformance": {ours: []string{"internal/arch/measure", "internal/mutate/list"}},
	"internal/mutate":      {ours: []string{"internal/flagsonly", "internal/mutate/list"}},
	// They are tools that take no arguments, as the one before.
	"internal/coverage":        {ours: []string{"internal/flagsonly"}},
	"internal/release/install": {ours: []string{"internal/flagsonly"}},
	"internal/arch":            {tests: []string{"internal/arch/measure"}},
	"internal/arch/shape":      {ours: []string{"internal/arch/measure"}},
	// It is an LLP for tests.
	"internal/recordpipe": {ours: []string{"transport", "internal/raceorder"}, tests: []string{"internal/placertest"}},
	"internal/sealtest":   {ours: []string{"transport"}},
	// It receives from LLPs in tests.
	"internal/placertest": {ours: []string{"transport"}},
	// It opens RNICs for tests of what stands on the verbs.
	"internal/rnictest": {ours: []string{"."}, third: []string{"github.com/stretchr/testify"}},
	// It runs a test in a process of its own.
	"internal/testproc": {third: []string{"github.com/stretchr/testify"}},
	// Its tests make its calls fail.
	"internal/fsync": {tests: []string{"internal/sysfail"}, third: []string{"golang.org/x/sys"}},
	// It has system calls fail.
	"internal/sysfail": {third: []string{"golang.org/x/sys"}},
	// It plays the peer in tests, over every lower layer, and knows no verbs.
	"internal/wiretest": {
		ours:  []string{"stag", "transport", "internal/octettest", "internal/recordpipe", "internal/hostile/octets"},
		third: []string{"github.com/cockroachdb/datadriven", "github.com/stretchr/testify"},
	},
	// Its tests read the list of planted defects.
	"internal/hostile/table": {tests: []string{"internal/mutate/list"}},
	// What a peer sends, for scripted peers and random attackers. The attackers are data.
	"internal/hostile/octets": {ours: []string{"stag"}},
	"internal/hostile/attack": {ours: []string{"stag", "internal/hostile/octets", "internal/names"}},
	// The program attacks all that listens, NVMe too.
	"internal/hostile": {
		ours: []string{".", "stag", "cm", "rma", "examples/nvme/backend", "examples/nvme/target", "internal/hostile"}, third: []string{"golang.org/x/sys"},
	},
	// It plays them at an address, and knows no verbs.
	"internal/hostile/drive": {ours: []string{"internal/hostile/attack"}},
	// It searches the whole for hangs.
	"internal/stress": {ours: []string{".", "stag", "internal/flagsonly", "internal/names"}},
	// It runs programs of verbs over all lower layers.
	"internal/litmus": {ours: []string{".", "stag", "internal/recordpipe", "internal/setup"}, tests: []string{"internal/raceorder"}},
	// Random programs of verbs, over every network.
	"internal/metamorphic":         {ours: []string{"internal/flagsonly", "internal/metamorphic/program"}},
	"internal/metamorphic/program": {ours: []string{".", "stag", "solicit", "internal/damage", "internal/selfsigned"}, tests: []string{"internal/raceorder", "internal/wiretest"}},
	"internal/soak":                {ours: []string{".", "stag", "internal/damage", "internal/flagsonly", "internal/metamorphic/program"}},
	// It damages connections for them, and for tests.
	"internal/damage": {ours: []string{"transport", "internal/closed", "internal/crc32c"}},
	// They touch the memory that peers share.
	"internal/crc32c":    {ours: []string{"internal/raceorder"}, third: []string{"golang.org/x/sys"}},
	"internal/blockcopy": {ours: []string{"internal/raceorder"}, third: []string{"golang.org/x/sys"}},
}

// testOnly are the packages that only test files may import.
var testOnly = []string{"internal/litmus", "internal/octettest", "internal/placertest", "internal/recordpipe", "internal/rnictest", "internal/sealtest", "internal/sysfail", "internal/testproc", "internal/wiretest", "rpcrdma/internal/captures"}

// programs may import anything of ours above internal, and heavy libraries.
var programs = []string{"cmd", "examples", "interop"}

// contractFiles declare what the packages of contractOnly may use of package transport: the
// contract, but no socket.
var contractFiles = []string{"llp.go", "placer.go", "prefault.go", "rtr.go", "sealer.go", "code.go"}

// contractOnly are the packages that see no more of transport than the contract.
var contractOnly = []string{"ddp", "rdmap", "commit", "internal/enhanced"}

// cores are the packages that do no IO, start no goroutine and know no clock, with
// the files that are excepted.
var cores = map[string]string{
	"stag": "",
	"mpa":  "conn*.go",

	"transport/sctp": "conn*.go",
	"ddp":            "",
	"rdmap":          "",
	"solicit":        "",
	// What backs memory does IO; what is on the wire does not.
	"commit": "backing*.go claim.go system*.go",

	"regionkey":         "",
	"rma/internal/wire": "",
	"rma/internal/op":   "",

	"rsocket/internal/wire":   "",
	"rsocket/internal/stream": "",
	"rpcrdma/internal/wire":   "",
	"rpcrdma/internal/plan":   "",

	"internal/hostile/octets": "",
	"internal/hostile/attack": "",

	"examples/nvme/capsule":               "",
	"examples/nvme/target/internal/model": "",
}

// ioPackages are what a core may not import.
var ioPackages = []string{"net", "os", "syscall", "crypto/tls", "golang.org/x/sys/unix"}

// clockFuncs are the functions of package time that ask or wait for the clock.
var clockFuncs = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
}

// maxLines is the length that no file exceeds.
const maxLines = 600
