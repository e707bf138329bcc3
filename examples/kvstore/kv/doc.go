// Package kv is a replicated key-value store whose Gets do not involve the program of a server: a client
// reads a bucket of the index, and then the value, by operations of package rma, which are authenticated
// and encrypted.
//
// There are two replicas, the primary and the backup. Each has the memory of all tenants, and a log in a
// durable file. Puts and Deletes are messages to the primary, which brings them to the backup by RDMA
// Writes and a Commit. Connections are authenticated by package cm.
//
// # Tenants
//
// A tenant has a key, derived from the master key of the replicas, and one region at each replica,
// with memory of its own. A replica grants it reads of that region and nothing else; the number of
// another tenant's region gets it an error as if there were none. [Replica.Rekey] replaces the key of
// a region under load. Clients get the new one when they are told that theirs is old.
//
// # Memory
//
// The index is a table of buckets with four entries each. A key is in the bucket that its hash names, or
// in one of the three behind it; a bucket tells if there are keys of it behind it. An entry has some bits
// of the hash, and where the value is. A value has its key, its version and a checksum. So a client sees
// whether a value is what it looks for: the memory may hold another one by now, and then the client begins
// again with the index. Operations on one rma.Memory exclude one another, so that a sealed read sees
// each bucket and each value as a whole. A plain RDMA Read of a long value may see parts of two, which the
// checksum shows.
//
// A client may remember where values are, and read them without the index. A value tells whether it is what an
// entry names that is not busy, so that this is as good as to read the entry at that moment.
//
// An entry stays where it is for as long as the key is there. If the reads of two buckets do not find a
// key, there was thus a moment between them, or before, in which there was no such key.
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
//  5. The primary makes the change in its memory, the entry is not busy any more, and the client is told.
//
// Many changes go through the steps together. If the backup cannot be reached, changes that are not in
// the log fail with [ErrUnavailable], and those that are with [ErrUncertain]: their keys stay busy until the
// backup is back, and then they are made. A client never gets an answer for a change that one replica alone has.
//
// # Why this is linearizable
//
// Let a change take effect when the backup makes it in its memory, in step 4. Then the memory of the
// backup is the state of the store, and a Get from the backup has its place when it reads the
// index, or a value that it has remembered. A Get from the primary finds an entry busy from before step 1 until after step 4 of each change
// of the key. An entry that is not busy is therefore that of the state at that moment, and the Get has
// its place there. A change is told to the client after step 4, and asked for before step 1. So each operation has a
// place between its begin and its end, and in the order of the places each Get returns what the
// change before it has stored. No operation depends on which replica others use, or think to be gone, on
// clocks, or on the order of failures, so a Get that fails goes to the other replica at once. It fails for good only
// if a replica is gone and the key is busy at the other one.
//
// If the backup ends, its memory comes again from its log, up to the mark. All that was in memory is there,
// since step 4 follows step 3. A change between the two takes effect while no client sees the memory. If the
// primary ends, it serves no client before the backup has all that is in the primary's log, which is more than what the
// backup has, since step 3 follows step 2. A backup whose file is new serves no client before that either.
// There is one primary, as its file can be opened once, and the backup ends the connection from before
// when there is a new one, so that no old mark is written late.
//
// Two replicas cannot do without each other for changes: neither could tell whether the other one is gone
// or only out of reach. To make the backup the primary is for a person who knows: stop both, and start a
// primary with the backup's file, or a copy of it, and a backup with a new one. The log has another name from then on,
// so that the primary from before is refused, if it is started again, by the backup that has it.
//
// # The log
//
// It is in one half of the file. When that is full the primary writes all values there are into the
// other half, with their length in front, brings them to the backup, and goes on there. A Put for which there is no room, in the index,
// among the values, or in half of the log, fails with [ErrFull]. The log is that of all tenants, so that one of them
// can fill it.
//
// A primary whose log ends within the values that it has begun with is refused: the file is damaged, and the backup may have
// what is lost, so that it can become the primary. Logs of before that length was written are read, too, without this check.
//
// A file keeps the half that it was made with, and the buckets: changes name entries of the index. A replica that is
// started with others is refused. For more of them, the values are put into a store with new files.
package kv
