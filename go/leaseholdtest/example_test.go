package leaseholdtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"code.invalid/leasehold/go/leaseholdtest"
)

func TestTheInvoiceIsSettledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		client, rival := store.Connect(), store.Connect() // as in two processes
		held, err := rival.Lock(t.Context(), "invoice/42")
		if err != nil {
			t.Fatal(err)
		}
		if got := settle(t.Context(), client); got != "later" { // it waits for 5 s, which take no time
			t.Error(got)
		}
		time.Sleep(time.Hour) // renewals happen on the way
		store.Lose("invoice/42")
		<-held.Context().Done()
		if got := settle(t.Context(), client); got != "settled" {
			t.Error(got)
		}
	})
}
