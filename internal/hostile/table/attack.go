package main

// An attack is one row.
type attack struct {
	id      string // ATK-1; planted defects of the series ATK have its number
	what    string // what the attacker does
	source  string // the section of RFC 5042, or the name in ReDMArk
	tries   string // how often the tests try it
	outcome string // what is required
	tests   []string
	through []string // planted defects of internal/mutate, each of one of the tests
}

// A group is a part of the table.
type group struct {
	title, about string
	attacks      []attack
}

// groups is the table.
func groups() []group {
	return []group{
		{"On the network", "RFC 5042 section 5: what end-to-end security mitigates. Package `cm` protects the set-up, TLS the stream, package `rma` its operations.", network},
		{"From remote peers: access", "RFC 5042 sections 6.1 to 6.3.", access},
		{"From remote peers: denial of service", "RFC 5042 sections 6.4 and 6.5.", denial},
		{"From local peers", "RFC 5042 section 7: other parts of the same program.", local},
		{"ReDMArk", "The vulnerabilities (V) and attacks (A) of Rothenberger et al., ReDMArk: Bypassing RDMA Security Mechanisms (USENIX Security 2021).", redmark},
		{"More attacks", "Attacks that neither document describes.", more},
	}
}
