// Package golden is what Linux sent and received as NVMe host and target over RDMA, for tests: both ends were Linux 6.12
// (LBAs of 4 KiB) and then Linux 6.1 (512 octets), with discovery, connections, I/O,
// queries of nvme-cli, namespaces added and removed, a reset, and a Connect that was refused.
//
// Of commands of one name on a connection the first two are there, or one if it is longer than 600 octets, with the
// data of the first. So responses are missing between others, and SQHD skips numbers.
package golden

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

//go:embed capsules.txt.gz
var file []byte

// Names of items that are no capsules. Others are the name of a command, with the prefix Response for its response
// and with the prefix Data for what RDMA Writes put into the memory that it names.
const (
	MPARequest   = "mpa-request"           // the whole frame
	MPAReply     = "mpa-reply"             // likewise
	ReadRequest  = "ddp-rdma-read-request" // from the DDP control octet on
	ReadResponse = "data-read-response"    // all that an RDMA Read of the target fetched
	Response     = "rsp:"
	Data         = "data:"
)

// An Item is one message, or all data that a command moved.
type Item struct {
	Conn       int  // number of the connection, from 0 on
	FromHost   bool // host to target
	Queue      uint16
	Name       string // without +inv
	Invalidate bool   // of a response: it was Send with Invalidate
	Octets     []byte
}

// IsCommand reports whether the item is a command capsule.
func (i *Item) IsCommand() bool {
	return i.FromHost && i.Name != MPARequest && i.Name != ReadResponse
}

// IsResponse reports whether the item is a response capsule.
func (i *Item) IsResponse() bool { return strings.HasPrefix(i.Name, Response) }

// Load reads all items, in the order on the wire of each connection.
func Load() ([]Item, error) {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	var items []Item
	conn := -1
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "# connection") {
			conn++
		}
		if line == "" || line[0] == '#' {
			continue
		}
		item, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", line, err)
		}
		item.Conn = conn
		items = append(items, item)
	}
	return items, lines.Err()
}

func parse(line string) (Item, error) {
	f := strings.Fields(line)
	if len(f) != 4 {
		return Item{}, fmt.Errorf("%d fields", len(f))
	}
	queue, err := strconv.ParseUint(f[1], 10, 16)
	if err != nil {
		return Item{}, err
	}
	octets, err := hex.DecodeString(f[3])
	if err != nil {
		return Item{}, err
	}
	name, inv := strings.CutSuffix(f[2], "+inv")
	return Item{
		FromHost: f[0] == "H>T", Queue: uint16(queue), Name: name, Invalidate: inv, Octets: octets,
	}, nil
}
