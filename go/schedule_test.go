package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
	"code.invalid/leasehold/go/leaseholdtest"
)

// names is work that leaves the name of its run.
func names(to *string) func(context.Context, *leasehold.Run) error {
	return func(_ context.Context, run *leasehold.Run) error {
		*to = run.Name()
		return nil
	}
}

func TestWorkIsDoneOnceInEachPeriod(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL, leasehold.Label("first")), connect(t, redis.URL)
	// Long enough that none begins while this test runs.
	const period = 20_000 * 24 * time.Hour
	for name, options := range map[string][]leasehold.OnceOption{
		"utc":      {leasehold.Every(period), leasehold.Offset(24 * time.Hour)},
		"zone":     {leasehold.Every(period), leasehold.TZ("Europe/Berlin"), leasehold.At("02:30")},
		"cron":     {leasehold.Cron("0 2 29 2 *"), leasehold.TZ("America/New_York")},
		"cooldown": {leasehold.Cooldown(time.Hour)},
	} {
		var resource string
		outcome, err := first.Once(t.Context(), name, "", names(&resource), options...)
		if err != nil || !outcome.Ran {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		outcome, err = second.Once(t.Context(), name, "", never(t), options...)
		if err != nil || outcome.Done == nil || outcome.Done.Owner != "first" {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		_, key, _ := strings.Cut(resource, "@")
		info, err := second.InspectRun(t.Context(), name, key)
		if err != nil || info.Resource != resource || info.Holder != nil || info.Done == nil || info.Done.Owner != "first" || info.Attempts != nil {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		if done, err := second.ForgetRun(t.Context(), name, key); err != nil || done == nil {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		if outcome, err := second.Once(t.Context(), name, "", names(&resource), options...); err != nil || !outcome.Ran {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
	}
}

func TestARunIsInspected(t *testing.T) {
	redis := testserver.StartRedis(t)
	first, second := connect(t, redis.URL, leasehold.Label("first")), connect(t, redis.URL)
	most := leasehold.MaxAttempts(2)
	info, err := second.InspectRun(t.Context(), "upload", "1")
	if want := (leasehold.RunInfo{Resource: "upload@1"}); err != nil || info != want {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = first.Once(t.Context(), "upload", "1", func(ctx context.Context, run *leasehold.Run) error {
		info, err := second.InspectRun(ctx, "upload", "1")
		if err != nil || info.Done != nil || info.Holder == nil || info.Holder.Owner != "first" || info.Holder.Token != run.Token() {
			t.Errorf("%+v, %v", info, err)
		}
		if info.Attempts == nil || info.Attempts.Count != 1 || info.Attempts.Max != 2 || info.Attempts.Reason != "" {
			t.Errorf("%+v", info.Attempts)
		}
		return errors.New("no paper")
	}, most)
	if err == nil {
		t.Error("it fails")
	}
	info, err = second.InspectRun(t.Context(), "upload", "1")
	if err != nil || info.Done != nil || info.Holder != nil || info.Attempts == nil || info.Attempts.Reason != "no paper" {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = leasehold.OnceWithResult(t.Context(), first, "upload", "1", func(context.Context, *leasehold.Run) (int, error) { return 7, nil }, most)
	if err != nil {
		t.Error(err)
	}
	info, err = second.InspectRun(t.Context(), "upload", "1")
	if err != nil || info.Done == nil || info.Done.Result == nil || string(info.Done.Result.Bytes) != "7" || info.Holder != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := second.InspectRun(t.Context(), "upload", "a\nb"); !errors.Is(err, leasehold.ErrConfig) {
		t.Error(err)
	}
}

func TestARunOnAQuorumIsInspectedWhileAMajorityAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []*leaseholdtest.Store{leaseholdtest.New(t), leaseholdtest.New(t), leaseholdtest.New(t)}
		client, err := leasehold.Open(leasehold.Quorum{ID: "00112233445566778899aabbccddeeff", Nodes: []leasehold.Store{nodes[0], nodes[1], nodes[2]}})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		// A quorum is born on all of its nodes.
		if err := lock(t, client, "first").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Once(t.Context(), "a", "1", func(context.Context, *leasehold.Run) error {
			nodes[0].Down()
			if info, err := client.InspectRun(t.Context(), "a", "1"); err != nil || info.Holder == nil {
				t.Errorf("%+v, %v", info, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		info, err := client.InspectRun(t.Context(), "a", "1")
		if err != nil || info.Holder != nil || info.Done == nil || info.Done.Unsettled {
			t.Errorf("%+v, %v", info, err)
		}
		nodes[1].Down()
		if _, err := client.InspectRun(t.Context(), "a", "1"); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Error(err)
		}
		rare := []leasehold.OnceOption{leasehold.Cron("0 2 1 * *"), leasehold.TZ("UTC")}
		if _, err := client.Once(t.Context(), "a", "", never(t), rare...); !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), "a quorum keeps completions") {
			t.Error(err)
		}
	})
}

// In the night in which clocks are set back, a job is done once.
func TestATimeThatComesTwiceIsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leaseholdtest.New(t)
		first, second := store.Connect(), store.Connect()
		until := func(hour, minute int) {
			// 29 October 2000, when Berlin set its clocks back from 03:00 to 02:00, which is 01:00 in UTC.
			time.Sleep(time.Until(time.Date(2000, time.October, 29, hour, minute, 0, 0, time.UTC)))
		}
		options := []leasehold.OnceOption{leasehold.Cron("30 2 * * *"), leasehold.TZ("Europe/Berlin")}
		var name string
		until(0, 29)
		if outcome, err := first.Once(t.Context(), "a", "", names(&name), options...); err != nil || name != "a@2000-10-28T02:30[Europe/Berlin]" {
			t.Errorf("%+v, %v: %s", outcome, err, name)
		}
		until(0, 30)
		if outcome, err := first.Once(t.Context(), "a", "", names(&name), options...); err != nil || name != "a@2000-10-29T02:30[Europe/Berlin]" {
			t.Errorf("%+v, %v: %s", outcome, err, name)
		}
		for _, minute := range []int{60, 89, 90, 120} {
			until(0, minute)
			if outcome, err := second.Once(t.Context(), "a", "", never(t), options...); err != nil || outcome.Done == nil {
				t.Errorf("%d: %+v, %v", minute, outcome, err)
			}
		}
		until(25, 30)
		if outcome, err := second.Once(t.Context(), "a", "", names(&name), options...); err != nil || name != "a@2000-10-30T02:30[Europe/Berlin]" {
			t.Errorf("%+v, %v: %s", outcome, err, name)
		}
	})
}

func TestACooldownLeavesTheJobAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		done := func(want bool) {
			t.Helper()
			outcome, err := client.Once(t.Context(), "refresh", "", func(context.Context, *leasehold.Run) error { return nil }, leasehold.Cooldown(50*time.Minute))
			if err != nil || outcome.Ran != want {
				t.Errorf("%+v, %v", outcome, err)
			}
		}
		done(true)
		time.Sleep(49 * time.Minute)
		done(false)
		time.Sleep(2 * time.Minute)
		done(true)
		if info, err := client.InspectRun(t.Context(), "refresh", ""); err != nil || info.Resource != "refresh@" || info.Done == nil {
			t.Errorf("%+v, %v", info, err)
		}
		if done, err := client.ForgetRun(t.Context(), "refresh", ""); err != nil || done == nil {
			t.Errorf("%+v, %v", done, err)
		}
		done(true)
	})
}

func TestAKeyThatWasNotSetIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := leaseholdtest.New(t).Connect()
		for why, options := range map[string][]leasehold.OnceOption{
			"the key is empty":                {leasehold.Keep(time.Hour)},
			"the key is empty; name":          nil,
			"every: -1s is not a duration":    {leasehold.Every(-time.Second)},
			"offset: -1s is not a duration":   {leasehold.Every(time.Hour), leasehold.Offset(-time.Second)},
			"cooldown: -1s is not a duration": {leasehold.Cooldown(-time.Second)},
			"have to be UTF-8":                {leasehold.Cron("\xff"), leasehold.TZ("UTC")},
			"import time/tzdata":              {leasehold.Every(time.Hour), leasehold.TZ("Mars/Olympus_Mons")},
			"it needs every":                  {leasehold.Offset(time.Hour)},
			"add every, such as one day":      {leasehold.At("02:00")},
		} {
			if _, err := client.Once(t.Context(), "a", "", never(t), options...); !errors.Is(err, leasehold.ErrConfig) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", why, err)
			}
		}
		if _, err := client.Once(t.Context(), "a", "k", never(t), leasehold.Every(time.Hour)); err == nil || !strings.Contains(err.Error(), "one of key, every and cron") {
			t.Error(err)
		}
		if _, err := client.Once(t.Context(), "a", "k", never(t), leasehold.Cooldown(time.Hour)); err == nil || !strings.Contains(err.Error(), "a key or a cooldown, not both") {
			t.Error(err)
		}
	})
}
