package program

import "math/rand/v2"

// Generate makes a program at random.
func Generate(r *rand.Rand) Program {
	g := generator{r: r, p: Program{Conns: 1, SRQ: r.IntN(4) == 0}}
	if r.IntN(3) == 0 {
		g.p.Conns = 2 + r.IntN(2)
	}
	for i := range g.p.Conns {
		for side := range 2 {
			for n := range 1 + r.IntN(3) {
				g.add(Op{End: End{i, side}, Verb: Register, Region: n, How: g.oneOf(hows[Register]), Len: 64 + g.length()})
			}
		}
	}
	length := 4 + r.IntN(60)
	for range length {
		g.add(g.op(g.end(), g.verb()))
	}
	for i := range g.p.Conns {
		if r.IntN(5) > 0 {
			g.fault(End{i, r.IntN(2)})
		}
	}
	return g.p
}

type generator struct {
	r *rand.Rand
	p Program
}

func (g *generator) add(o Op) { g.p.Ops = append(g.p.Ops, o) }

func (g *generator) end() End { return End{g.r.IntN(g.p.Conns), g.r.IntN(2)} }

func (g *generator) verb() Verb { return common[g.r.IntN(len(common))] }

func (g *generator) oneOf(all []string) string { return all[g.r.IntN(len(all))] }

// length returns a number of octets: often a small one, and often one that fills a segment.
func (g *generator) length() int {
	switch g.r.IntN(6) {
	case 0:
		return g.r.IntN(9)
	case 1:
		return g.r.IntN(64)
	case 2:
		return 96*(1+g.r.IntN(8)) - 18 + g.r.IntN(8)
	case 3:
		return 400 + g.r.IntN(200)
	case 4:
		return 1400 + g.r.IntN(100)
	default:
		return g.r.IntN(messageLen + 1)
	}
}

// common lists the verbs of the lines of a program, each in proportion to its frequency.
var common = []Verb{
	Write, Write, Write, Read, Read, Read, Send, Send, Send, WriteImm, SendInv, ReadInv, FetchAdd, CompareSwp, Swap, Imm, Commit,
	Recv, Recv, Recv, Register, Invalidate, Drain, Compare,
}

// faults are the verbs that end a connection.
var faults = []Verb{Close, Abort, Terminate, Cut, Cut, Cut, BadWrite, BadRead, BadAdd, BadInv, NoReceive, TooLong, Race, Race}

// uses are the parameters of the verbs: R a region, s and d offsets, l a length, p a gather list,
// u unsignaled, v solicited, i inline, f a fence, m Immediate Data, a the operands of atomic operations.
var uses = map[Verb]string{
	Register: "Rluf", Invalidate: "Ru", Recv: "lp", Send: "slpuvif", SendInv: "Rslpuvif", Write: "Rsdlpuif", WriteImm: "Rsdlpuvifm",
	Read: "Rsdluf", ReadInv: "Rsluf", FetchAdd: "Rduaf", CompareSwp: "Rduaf", Swap: "Rduaf", Imm: "muvf", Commit: "Rdluf",
	BadWrite: "Rlpu", BadRead: "Rlu", BadAdd: "Ru", BadInv: "Ru", NoReceive: "slu", TooLong: "slu", Race: "R", Cut: "l",
}

// op makes one line.
func (g *generator) op(end End, v Verb) Op {
	r := g.r
	o := Op{End: end, Verb: v}
	if all := hows[v]; len(all) > 0 {
		o.How = g.oneOf(all)
	}
	for _, c := range uses[v] {
		switch c {
		case 'R':
			o.Region = r.IntN(3)
		case 's':
			o.Src = r.IntN(512)
		case 'd':
			o.Dst = r.IntN(512)
		case 'l':
			o.Len = g.length()
		case 'p':
			o.SGEs = r.IntN(4)
		case 'u':
			o.Unsignaled = r.IntN(3) == 0
		case 'v':
			o.Sol = r.IntN(3) == 0
		case 'i':
			o.Inline = r.IntN(4) == 0
		case 'm':
			o.Imm = r.Uint64()
		case 'f':
			if r.IntN(8) == 0 {
				o.Fence = g.oneOf([]string{"read", "local"})
			}
		case 'a':
			g.operands(&o)
		}
	}
	return o
}

// operands draws the operands of an atomic operation.
func (g *generator) operands(o *Op) {
	r := g.r
	o.Mask = []uint64{0, 0, 1<<63 | 1<<31, 0xffff, r.Uint64()}[r.IntN(5)]
	switch o.Verb {
	case FetchAdd:
		o.Add = r.Uint64()
		return
	case CompareSwp:
		o.Cmp = r.Uint64()
		if r.IntN(2) == 0 {
			o.Mask = 1 << r.IntN(64) // so that the comparison succeeds more often
		}
	default:
	}
	o.Swap = r.Uint64()
}

// fault makes the line that ends a connection, and puts it among the connection's last lines: all later
// lines are in doubt.
func (g *generator) fault(end End) {
	o := g.op(end, faults[g.r.IntN(len(faults))])
	var mine []int
	for i, x := range g.p.Ops {
		if x.End.Conn == end.Conn {
			mine = append(mine, i)
		}
	}
	at := mine[len(mine)-1-g.r.IntN(min(len(mine), 12))] + 1
	g.p.Ops = append(g.p.Ops[:at], append([]Op{o}, g.p.Ops[at:]...)...)
	for range g.r.IntN(6) {
		g.add(g.op(End{end.Conn, g.r.IntN(2)}, g.verb()))
	}
}

// FromSeed makes the program of a seed, with Configs of the networks.
func FromSeed(seed uint64, networks ...string) Program {
	p := Generate(rand.New(rand.NewPCG(seed, 0)))
	p.Configs = DrawConfigs(rand.New(rand.NewPCG(seed, 1)), networks...)
	return p
}
