package kv

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// Both replicas hold a master key, and each tenant holds a key that is derived from it for its name: see
// TenantKey. The primary connects to the backup as a client with replicatorName.
const (
	keyID = 1
	group = "kvstore"
)

// replicatorName is a name that no tenant can have.
var replicatorName = [16]byte([]byte("(replicator)    "))

func replicatorKey(master []byte) []byte { return cm.ClientKey(master, keyID, replicatorName) }

// MasterLen is the length in octets of a master key, and of the key of a tenant.
const MasterLen = 32

// nameOf returns the name of a tenant in the form of package cm.
func nameOf(tenant string) (name [16]byte, err error) {
	if len(tenant) == 0 || len(tenant) > len(name) || tenant[0] == '(' {
		return name, fmt.Errorf("kv: %q is no name of a tenant: it has 1 to %d octets, and does not begin with (", tenant, len(name))
	}
	copy(name[:], tenant)
	return name, nil
}

// RegionOf returns the number of the region of a tenant, at both replicas.
func RegionOf(tenant string) (uint64, error) {
	name, err := nameOf(tenant)
	return regionOf(name), err
}

func regionOf(name [16]byte) uint64 {
	sum := sha256.Sum256(name[:])
	return binary.BigEndian.Uint64(sum[:])
}

// TenantKey returns the key of a tenant, the only key that the tenant needs.
func TenantKey(master []byte, tenant string) ([]byte, error) {
	name, err := nameOf(tenant)
	if err != nil {
		return nil, err
	}
	return cm.ClientKey(master, keyID, name), nil
}

// authAs authenticates a client of that name.
func authAs(name [16]byte, key []byte) (*cm.Auth, error) {
	if len(key) != MasterLen {
		return nil, fmt.Errorf("kv: a key of %d octets, not of %d", len(key), MasterLen)
	}
	ring, err := cm.NewRing(cm.Key{ID: keyID, Secret: key, Group: group, Primary: true})
	if err != nil {
		return nil, err
	}
	return cm.New(&cm.Config{Ring: ring, ID: name})
}

// authServer authenticates the clients of a replica.
func authServer(master []byte, log *slog.Logger, judge func(iwarp.Peer, []byte) error) (*cm.Auth, error) {
	if len(master) != MasterLen {
		return nil, fmt.Errorf("kv: a master key of %d octets, not of %d", len(master), MasterLen)
	}
	ring, err := cm.NewRing(cm.Key{ID: keyID, Secret: master, Group: group, Derive: true})
	if err != nil {
		return nil, err
	}
	return cm.New(&cm.Config{
		Ring: ring, ID: [16]byte([]byte("kvstore replica ")), Logger: log,
		Authorize: func(_ context.Context, peer iwarp.Peer, app []byte) error { return judge(peer, app) },
	})
}

// A use is what a connection is for: the first octet of the private data of its Request.
type use byte

const (
	useGets      use = 'G' // sealed reads, by operations of package rma
	useChanges   use = 'C' // requests for Puts and Deletes
	useReplicate use = 'R' // the primary writes the backup's log
	usePlain     use = 'P' // RDMA Reads without keys
)

var errPeer = errors.New("kv: the peer may not use this replica so")

func useOf(private []byte) (use, error) {
	if len(private) != 1 {
		return 0, fmt.Errorf("kv: private data of %d octets, want 1: what the connection is for", len(private))
	}
	return use(private[0]), nil
}
