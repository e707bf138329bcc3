// Package kv is a replicated key-value store whose Gets do not involve the program of a server: a client
// reads a bucket of the index, and then the value, with operations of package rma, which are authenticated
// and encrypted.
//
// There are two replicas, the primary and the backup. Each holds the memory of all tenants, and a log in a
// durable file. Puts and Deletes are messages to the primary, which sends them to the backup by RDMA
// Writes and a Commit. Package cm authenticates the connections.
//
// # Tenants
//
// A tenant has a key, derived from the master key of the replicas, and one region at each replica,
// with its own memory. A replica grants it reads of that region and nothing else. If it uses the number
// of another tenant's region, it gets the same error as for a region that does not exist. [Replica.Rekey]
// replaces the key of a region under load. Clients get the new key when they are told that theirs is old.
//
// # Memory
//
// The index is a table of buckets with four entries each. A key is in the bucket that its hash names, or
// in one of the three buckets after it; a bucket says whether keys of it are in the buckets after it. An
// entry contains some bits of the hash, and the location of the value. A value contains its key, its version
// and a checksum. So a client detects whether it has read the right value: if the memory holds another value
// by now, the client starts again with the index. Operations on one rma.Memory exclude one another, so
// a sealed read sees each bucket and each value as a whole. A plain RDMA Read of a long value may see parts
// of two values, which the checksum reveals.
//
// A client may remember where values are, and read them without the index. A value says whether an entry that is
// not busy names it, so this is equivalent to reading the entry at that moment.
//
// An entry does not move while its key exists. So if the reads of two buckets do not find a key, there was a
// moment between them, or before, at which the key did not exist.
//
// # Changes
//
// Each change has a version, and goes through five steps at the primary:
//
//  1. The entry becomes busy. A client that reads it asks the backup.
//  2. The change is made durable in the primary's log.
//  3. The same octets are written into the backup's log, at the same place, by RDMA Writes. A Commit makes
//     them durable and then moves the mark, which says where the log ends.
//  4. A message tells the backup, which makes the change in its memory, and answers.
//  5. The primary makes the change in its memory, the entry is no longer busy, and the client gets its answer.
//
// Many changes go through the steps together. If the backup cannot be reached, changes that are not in the
// log fail with [ErrUnavailable]. Changes that are in the log fail with [ErrUncertain]: their keys stay busy until
// the backup is back, and then they are made. No client gets a success for a change that only one replica has.
//
// # Why this is linearizable
//
// Let a change take effect when the backup makes it in its memory, in step 4. Then the memory of the backup is
// the state of the store, and a Get from the backup takes effect when it reads the index, or the value at a
// remembered location. A Get from the primary finds the entry busy from step 1 until after step 4 of each change
// of the key. So an entry that is not busy matches the state of the store at that moment, and the Get takes effect
// then. A change is requested before step 1, and acknowledged after step 4. So each operation takes effect at
// a point between its beginning and its end, and in the order of these points each Get returns what the
// preceding change has stored. No operation depends on which replica others use or believe to be gone, on
// clocks, or on the order of failures, so a Get that fails goes to the other replica at once. It finally fails
// only if one replica is gone and the key is busy at the other one.
//
// When the backup restarts, it rebuilds its memory from its log, up to the mark. Everything that was in memory is
// in the log, since step 4 follows step 3. A change between the two steps takes effect while no client sees the memory.
// When the primary restarts, it serves no client before the backup has the whole of the primary's log, which may
// contain more than the backup's log, since step 3 follows step 2. Nor does a backup with a new file serve clients
// before that. There is only one primary, as its file can be opened only once. When a new connection of the primary
// arrives, the backup ends the previous one, so that no old mark is written late.
//
// Changes need both replicas: neither could tell whether the other one is gone or only unreachable. Only a person
// who knows can make the backup the primary: stop both, and start a primary with the backup's file, or a copy of
// it, and a backup with a new file. From then on the log has another name, so that a backup which has that name
// refuses the old primary if it is started again.
//
// # The log
//
// The log is in one half of the file. When that half is full, the primary writes all existing values into the other
// half, preceded by their length, sends them to the backup, and continues there. A Put for which there is no room in
// the index, among the values, or in half of the log fails with [ErrFull]. All tenants share the log, so one of them
// can fill it.
//
// A primary does not start if its log ends within the values with which it began: the file is damaged, and the backup may
// have what is lost, so that it can become the primary. Logs from before the length was recorded are read without this check.
//
// The size of a half and the number of buckets of a file never change, because changes name entries of the index. A
// replica that is started with other sizes fails. To enlarge them, put the values into a store with new files.
package kv
