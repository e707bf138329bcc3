package arch

// A rule says what the packages under one path may import.
type rule struct {
	ours  []string // packages of this module, by path below it; "internal" means all below internal
	tests []string // what test files may import besides
	third []string // modules or packages of others that non-test code may use
}

// testLibraries may be imported by the tests of every package.
var testLibraries = []string{
	"github.com/stretchr/testify",
	"github.com/anishathalye/porcupine",
	"github.com/cockroachdb/datadriven",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
	"golang.org/x/net",
	"golang.org/x/sys",
}

// table is the import graph, from the bottom up. A package that is not in it may
// not exist; the root package is ".". Programs (see programs) are not in it.
var table = map[string]rule{
	"stag":      {ours: []string{"internal"}},
	"transport": {ours: []string{"internal"}, third: []string{"golang.org/x/sys"}},
	// The window over inbound transfers knows none of them.
	"solicit": {ours: []string{"internal/names"}},

	// DDP over SCTP stands beside MPA, on the contract.
	"transport/sctp": {ours: []string{"transport", "internal"}},
	// The user-space back end is the one place that knows pion, since a network that works
	// everywhere is worth an SCTP that others maintain; its logger only so that it says
	// nothing.
	"transport/sctpudp": {
		ours:  []string{"transport", "transport/sctp", "internal"},
		third: []string{"github.com/pion/sctp", "github.com/pion/logging"},
	},
	// The kernel's back end is the one place that knows the library of its sockets.
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

	// == for values of any type.
	"internal/equal": {},
	// The server that a configuration of TLS names.
	"internal/servername": {},
	// Numbers as texts.
	"internal/units": {},
	// Which requests of HTTP another site has led here.
	"internal/rebinding": {},
	// What is counted, as plain values.
	"counters": {ours: []string{"rdmap"}},
	// It adds up what QPs have counted.
	"internal/tally": {ours: []string{"commit", "counters", "rdmap", "transport", "internal"}},

	// It exports what is counted: the one package that knows Prometheus, besides programs.
	"metrics": {
		ours:  []string{".", "cm", "counters", "rma", "solicit", "internal/equal"},
		tests: []string{"stag", "internal/rnictest"},
		third: []string{"github.com/prometheus/client_golang"},
	},

	// It makes spans of what the verbs do: the one package that knows OpenTelemetry.
	"tracing": {
		ours:  []string{".", "commit", "rma", "stag", "transport", "internal/setup"},
		tests: []string{"cm", "counters", "internal/rnictest", "internal/selfsigned", "internal/wiretest"},
		third: []string{"go.opentelemetry.io/otel"},
	},

	// It shows what is counted, to browsers and to iwarp top: the one package with a handler of HTTP, besides programs.
	"monitor": {
		ours:  []string{".", "counters", "transport", "internal/rebinding", "internal/units"},
		tests: []string{"cm", "stag", "internal/rnictest"},
	},

	// Connection set-up, on the verbs, which know what authenticates it by an interface alone.
	"cm": {ours: []string{".", "transport", "internal/bucket", "internal/closed", "internal/logkey", "internal/lru", "internal/names", "internal/quota", "internal/recent", "internal/servername"}, tests: []string{"stag", "internal"}},

	// The keys of operations on regions. They know no connection: what they need of one is a
	// function.
	"regionkey": {ours: []string{"internal"}},
	// The messages of these operations, as octets.
	"rma/internal/wire": {ours: []string{"regionkey", "rma/internal/op"}, tests: []string{"internal/octettest"}},

	// One-sided operations, on the verbs. Identity and keys of a connection come through the verbs too.
	"rma": {
		ours:  []string{".", "stag", "regionkey", "solicit", "rma/internal", "internal/bucket", "internal/closed", "internal/logkey", "internal/lru", "internal/names", "internal/quota", "internal/recent"},
		tests: []string{"cm", "transport", "internal"},
	},
	// The state machines of one-sided operations import nothing: they do nothing either.
	"rma/internal/op": {},

	// Stream sockets as librdmacm has them, on the public verbs.
	"rsocket": {
		ours:  []string{".", "stag", "rsocket/internal", "internal/blockcopy", "internal/endwait", "internal/sockerr"},
		tests: []string{"cm", "internal"},
	},
	// The octets of stream sockets, and their protocol, which does nothing either.
	"rsocket/internal/wire":   {tests: []string{"internal/octettest"}},
	"rsocket/internal/stream": {ours: []string{"rsocket/internal/wire"}},
	// RPC over RDMA, on the verbs: its octets, and what goes where.
	"rpcrdma":                   {ours: []string{".", "stag", "rpcrdma/internal", "internal/blockcopy", "internal/closed"}, tests: []string{"solicit", "transport", "internal/octettest", "internal/raceorder", "internal/wiretest"}},
	"rpcrdma/internal/wire":     {tests: []string{"rpcrdma/internal/captures", "internal/octettest"}},
	"rpcrdma/internal/plan":     {ours: []string{"rpcrdma/internal/wire"}, tests: []string{"rpcrdma/internal/captures"}},
	"rpcrdma/internal/captures": {third: []string{"github.com/stretchr/testify"}},

	// One connection of a queue pair, below the verbs.
	"internal/qpconn": {ours: []string{"ddp", "rdmap", "stag", "transport", "internal"}, third: []string{"golang.org/x/sys"}},

	// What regions do to be durable.
	"internal/durable": {ours: []string{"commit", "stag", "internal"}},

	// Of internal there is one row for all, but for the exceptions below it.
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
