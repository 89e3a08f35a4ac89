package leasehold

import (
	"errors"
	"fmt"
	"time"

	"code.invalid/leasehold/go/internal/core"
)

const advice = "; the work under the lock must stop, since another worker may have the lock"

var faults = map[core.FaultKind]string{
	core.FaultKindTimeout:     "no reply in time",
	core.FaultKindReset:       "connection broken",
	core.FaultKindUnreachable: "not reachable",
	core.FaultKindCancelled:   "request abandoned",
	core.FaultKindServer:      "store failure",
	core.FaultKindBusy:        "store busy",
	core.FaultKindProtocol:    "unintelligible answer",
}

func fault(of core.Fault) string {
	if of.Detail == nil {
		return faults[of.Kind]
	}
	return faults[of.Kind] + ": " + *of.Detail
}

func because(trouble *core.Fault) string {
	if trouble == nil {
		return ""
	}
	return " (" + fault(*trouble) + ")"
}

// failed is the error of an acquisition that ended without the lock.
func failed(resource string, failure core.Failure) *Error {
	made := func(kind error, format string, parts ...any) *Error {
		return &Error{Kind: kind, Resource: resource, message: fmt.Sprintf(format, parts...)}
	}
	held := func(kind error, by *core.Holding) *Error {
		who := holder(by)
		failed := made(kind, "%s: %s", kind, who)
		failed.Holder = who
		return failed
	}
	switch why := failure.(type) {
	case core.FailureBusy:
		return held(ErrBusy, why.Holding)
	case core.FailureTimedOut:
		return held(ErrTimeout, why.Holding)
	case core.FailureThrottled:
		return made(ErrUnavailable, "the store throttles requests (%s)", fault(core.Fault(why)))
	case core.FailureUnavailable:
		return made(ErrUnavailable, "the store cannot be used now (%s)", fault(core.Fault(why)))
	case core.FailureRefused:
		return made(ErrRefused, "the store refuses: %s", why.Detail)
	case core.FailureDone:
		return made(errDone, "the work is done already")
	case core.FailureCancelled:
		return closedError(resource)
	case core.FailureOther:
		return made(ErrUnavailable, "%s", why.Message)
	case core.FailureAbstains:
		return made(ErrUnavailable, "too few nodes of the quorum vote, since others may have lost data: in %.0f s they vote again",
			milliseconds(why.LeftMs).Seconds())
	case core.FailureCompletionsInDoubt:
		return made(ErrUnavailable, "nodes of the quorum may have lost completions of finished work, and too few others are left")
	default:
		return made(ErrUnavailable, "the store cannot be used now (%T)", failure)
	}
}

// errDone is for runs alone, which report it as an outcome.
var errDone = errors.New("done")

// contents is what a node has of a record, or why that is not known.
func contents(resource string, answer core.Outcome) (core.Seen, error) {
	why := func(kind error, format string, parts ...any) (core.Seen, error) {
		return core.Seen{}, &Error{Kind: kind, Resource: resource, message: fmt.Sprintf(format, parts...)}
	}
	switch answer := answer.(type) {
	case core.OutcomeApplied:
		if read, is := answer.Applied.(core.AppliedRead); is {
			return core.Seen(read), nil
		}
	case core.OutcomeUnknown:
		return why(ErrUnavailable, "the store cannot be used now (%s)", fault(core.Fault(answer)))
	case core.OutcomeNotApplied:
		switch refusal := answer.Refusal.(type) {
		case core.RefusalThrottled:
			return why(ErrUnavailable, "the store throttles requests (%s)", fault(core.Fault(refusal)))
		case core.RefusalUnavailable:
			return why(ErrUnavailable, "the store cannot be used now (%s)", fault(core.Fault(refusal)))
		case core.RefusalNeedsCredentials:
			return why(ErrUnavailable, "the store cannot be used now (%s)", fault(core.Fault(refusal)))
		case core.RefusalDenied:
			return why(ErrRefused, "the store refuses: %s", refusal.Detail)
		}
	}
	return why(ErrUnavailable, "the store cannot be used now (%T)", answer)
}

func holder(of *core.Holding) *Holder {
	if of == nil {
		return nil
	}
	who := &Holder{Owner: value(of.Owner), Token: value(of.Counter), Data: of.Data, Foreign: of.Holder == nil}
	if of.LeftMs != nil {
		who.Left = milliseconds(*of.LeftMs)
	}
	if of.SinceUnixMs != nil {
		who.Since = time.UnixMilli(int64(*of.SinceUnixMs))
	}
	return who
}

func value[T any](of *T) (v T) {
	if of != nil {
		v = *of
	}
	return v
}

func milliseconds(n uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(n, most)) * time.Millisecond
}

// lost is the error of a lease that is over; trouble is the failure of its last renewal, if any.
func lost(resource string, reason core.LostReason, trouble *core.Fault) *Error {
	var name, why string
	switch reason := reason.(type) {
	case core.LostReasonExpired:
		name, why = "expired", "no renewal was confirmed in time"
	case core.LostReasonMaxHold:
		name, why = "max_hold", "max hold has passed"
	case core.LostReasonTakenOver:
		name, why = "taken_over", "somebody else holds the lock now"
	case core.LostReasonReleased:
		name, why = "released", "somebody broke the lock"
	case core.LostReasonRecordGone:
		name, why = "record_gone", "the store has lost the record"
	case core.LostReasonRevoked:
		name, why = "revoked", "somebody revoked it"
	case core.LostReasonOther:
		why = reason.Message
	}
	message := "the lease is lost: " + why + because(trouble) + advice
	return &Error{Kind: ErrLost, Resource: resource, Reason: name, message: message}
}

func tooShort(resource string, left, wanted time.Duration, trouble *core.Fault) *Error {
	message := fmt.Sprintf("only %.3f s of validity are left, and %.3f s were asked for: renewals are late%s",
		left.Seconds(), wanted.Seconds(), because(trouble))
	return &Error{Kind: ErrLost, Resource: resource, message: message}
}

// refused is the error of an argument or setting that the protocol does not accept, or of a command at the wrong time.
func refused(resource string, err error) error {
	var command *core.Refused[core.CommandError]
	if errors.As(err, &command) {
		return refusedCommand(resource, command.Reason)
	}
	var setting *core.Refused[core.SettingError]
	if errors.As(err, &setting) {
		return refusedSetting(resource, setting.Reason)
	}
	return err
}

func refusedCommand(resource string, reason core.CommandError) *Error {
	switch reason := reason.(type) {
	case core.CommandErrorInvalid:
		return refusedSetting(resource, reason.Error)
	case core.CommandErrorClosed:
		return closedError(resource)
	case core.CommandErrorTooManyLocks:
		return configError("the client holds or waits for %d locks, which is its limit; release some first", reason.Limit)
	case core.CommandErrorAboveMaxTTL:
		return configError("ttl and lock delay together are %d ms, but the quorum allows %d ms: see Quorum.MaxTTL",
			reason.RecordTTLMs, reason.MaxTTLMs)
	case core.CommandErrorAboveMaxKeep:
		return configError("keep is %d ms, but a quorum allows %d ms at most", reason.KeepMs, reason.MaxKeepMs)
	case core.CommandErrorOther:
		return configError("%s", reason.Message)
	default:
		return configError("refused: %T", reason)
	}
}

func refusedSetting(resource string, reason core.SettingError) *Error {
	made := func(format string, parts ...any) *Error {
		refused := configError(format, parts...)
		refused.Resource = resource
		return refused
	}
	switch reason := reason.(type) {
	case core.SettingErrorEmptyResource:
		return made("the resource has no name; give it 1 to 1024 bytes")
	case core.SettingErrorEmptyKey:
		return made("the key is empty; name the occurrence of the job, such as its date")
	case core.SettingErrorTooLong:
		return configError("%s has %d bytes; at most %d are allowed", reason.What, reason.Bytes, reason.MaxBytes)
	case core.SettingErrorControlCharacter:
		return configError("%s has the control character %U at byte %d; names hold printable text only",
			reason.What, rune(reason.Code), reason.At)
	case core.SettingErrorTooShort:
		return made("%s is %d ms, but must be at least %d ms", reason.What, reason.ValueMs, reason.MinMs)
	case core.SettingErrorTooFar:
		return made("%s is %d ms, but must be at most %d ms", reason.What, reason.ValueMs, reason.MaxMs)
	case core.SettingErrorKeepBelowTTL:
		return made("keep is %d ms, but must be at least the ttl, %d ms", reason.KeepMs, reason.TTLMs)
	case core.SettingErrorDrift:
		return made("drift of %d ppm is outside %d to %d ppm", reason.PPM, reason.MinPPM, reason.MaxPPM)
	case core.SettingErrorNodes:
		return made("a quorum has 1 to %d nodes, not %d", reason.Max, reason.Count)
	case core.SettingErrorStore:
		return made("%s", reason.Detail)
	case core.SettingErrorOther:
		return made("%s", reason.Message)
	default:
		return made("refused: %+v", reason)
	}
}
