// Package leasehold takes locks that many machines share.
//
// A lock is a lease: a store records that a name belongs to one owner for a limited time, together with a fencing token that grows
// with every grant. While the process lives, the lease is renewed in the background.
//
//	client, err := leasehold.Connect("redis://localhost")
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	lease, err := client.Lock(ctx, "invoice/42", leasehold.Wait(10*time.Second))
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	return bill(lease.Context(), lease.Token())
//
// A lease ends early if the store cannot be reached for a whole ttl, if the process is stopped for so long, or if somebody takes
// the lock away. Then [Lease.Context] is cancelled, with an [*Error] of the kind [ErrLost] as its cause, and the work has to
// stop. A process that was stopped cannot know that in time: let the resource compare tokens, as package fence does.
//
// [Client.Once] does work once: its success is written down; [OnceWithResult] returns its value to all who come later. [Client.Lead] stands in an election. [Open] is for stores other than
// Redis, and package leaseholdtest for tests of programs that take locks.
//
// The protocol is the one of leasehold's other languages, the same machine compiled from WebAssembly to Go, and needs no cgo.
package leasehold
