------------------------------- MODULE leader -------------------------------
(***************************************************************************)
(* Several servers share one database. One of them leads: it decides from  *)
(* memory, commits to the database and answers clients. This module says   *)
(* how a leader is elected, renewed, deposed and fenced, and what holds    *)
(* although requests, replies and servers are lost, late or paused. Read   *)
(* README.md beside it first.                                              *)
(*                                                                         *)
(*              Campaign                 Load                              *)
(*     standby ---------> campaigning ---------> leading                   *)
(*        ^                    |                    |                      *)
(*        +------ StepDown ----+------ StepDown ----+                      *)
(*                                                                         *)
(* A request of a campaigning or leading server is first sent, then done   *)
(* by the database (Elect, Extend), then its reply arrives (Load, Renewed).*)
(*                                                                         *)
(* A paused server is one that takes no step while Tick does, so there is  *)
(* no action for it. A restart is StepDown. A lost message is one that no  *)
(* step takes up.                                                          *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Servers,        \* interchangeable; two are enough to contradict each other
  Commands,       \* what clients ask for; a client may ask any leader, and again
  Lease,          \* how long an election or a renewal lasts, by the database's clock
  Margin,         \* what a server takes off the lease when it counts by its own clock
  Drift,          \* how much longer than by the database's clock its count may last
  Apart,          \* TRUE: a request to the database is sent in one step and executed in a later one
  TermsMax, CommitsMax, PromotionsMax,  \* limits that make the model finite
  Fault           \* "none", or the mistake to make

VARIABLES
  db,       \* the database: epoch, what is left of the lease, the stored and the actual timeline, fence floor, log
  replica,  \* an older state of the database: an asynchronous replica, or a backup
  wall,     \* wall clock, in steps so coarse that one passes between two promotions
  server,   \* per server: status, epoch, what it counts as left of its lease, request under way, memory
  sent,     \* every commit ever sent; each may be executed late, again and again, or never
  issued,   \* history: every log entry in the order of the commits, those that a promotion dropped included
  shown,    \* history: the log entries that some answer was based on
  lost      \* history: the log entries that a promotion dropped

(* How far a jump goes: past every epoch and fence that can have been used before it. *)
Stride == 10
ASSUME TermsMax < Stride /\ CommitsMax < Stride

(* The count of a server, at its longest. Shorter counts need no states of their own: a count only ever allows
   answers, and no server has to answer. *)
Window == Lease - Margin + Drift

Max(a, b) == IF a > b THEN a ELSE b
Less(n) == IF n > 0 THEN n - 1 ELSE 0
Entries(log) == {log[i] : i \in 1..Len(log)}
LastFence(log) == IF Len(log) = 0 THEN 0 ELSE log[Len(log)].fence

Empty == [epoch |-> 0, left |-> 0, known |-> 1, timeline |-> 1, floor |-> 0, log |-> <<>>]
Standby == [status |-> "standby", epoch |-> 0, left |-> 0, asked |-> "nothing", window |-> 0, floor |-> 0,
            memory |-> <<>>]

Init ==
  /\ db = Empty /\ replica = Empty /\ wall = 0
  /\ server = [s \in Servers |-> Standby]
  /\ sent = {} /\ issued = <<>> /\ shown = {} /\ lost = {}

(* One step of the database's clock. *)
Tick ==
  /\ db' = [db EXCEPT !.left = Less(@)]
  /\ server' = [s \in Servers |-> [server[s] EXCEPT !.left = Less(@), !.window = Less(@)]]
  /\ UNCHANGED <<replica, wall, sent, issued, shown, lost>>

-----------------------------------------------------------------------------
(* Election *)

(* Every statement compares the timeline that the database is on with the stored one. *)
TimelineKnown == db.timeline = db.known \/ Fault = "timeline ignored"

MayElect ==
  /\ db.left = 0 \/ Fault = "campaigns within the lease"
  /\ TimelineKnown
  /\ db.epoch % Stride < TermsMax

Elected == [db EXCEPT !.epoch = @ + 1, !.left = Lease]

(* The count of the lease begins here, before anything is sent. *)
Campaign(s) ==
  /\ server[s].status = "standby" /\ MayElect
  /\ LET begun == [Standby EXCEPT !.status = "campaigning", !.asked = "sent", !.window = Window]
     IN IF Apart
        THEN /\ server' = [server EXCEPT ![s] = begun]
             /\ UNCHANGED db
        ELSE /\ server' = [server EXCEPT ![s] = [begun EXCEPT !.asked = "done", !.epoch = db.epoch + 1]]
             /\ db' = Elected
  /\ UNCHANGED <<replica, wall, sent, issued, shown, lost>>

Elect(s) ==
  /\ server[s].status = "campaigning" /\ server[s].asked = "sent" /\ MayElect
  /\ db' = Elected
  /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.asked = "done", !.epoch = db.epoch + 1]]
  /\ UNCHANGED <<replica, wall, sent, issued, shown, lost>>

CountedLeft(s) == IF Fault = "deadline from reply" THEN Window ELSE server[s].window

(* The reply arrives, and what is stored is loaded. A slow load is a late reply. *)
Load(s) ==
  /\ server[s].status = "campaigning"
  /\ server[s].asked = "done" \/ Fault = "unknown election is won"
  /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.status = "leading", !.left = CountedLeft(s), !.asked = "nothing",
                                               !.window = 0, !.floor = db.floor, !.memory = db.log]]
  /\ UNCHANGED <<db, replica, wall, sent, issued, shown, lost>>

-----------------------------------------------------------------------------
(* Renewal, step-down, resignation *)

MayExtend(s) ==
  /\ db.epoch = server[s].epoch \/ Fault = "renewal ignores epoch"
  /\ TimelineKnown \/ Fault = "timeline checked at election only"

Renew(s) ==
  /\ server[s].status = "leading" /\ server[s].asked = "nothing"
  /\ IF Apart
     THEN /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.asked = "sent", !.window = Window]]
          /\ UNCHANGED db
     ELSE /\ MayExtend(s)
          /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.asked = "done", !.window = Window]]
          /\ db' = [db EXCEPT !.left = Lease]
  /\ UNCHANGED <<replica, wall, sent, issued, shown, lost>>

Extend(s) ==
  /\ server[s].status = "leading" /\ server[s].asked = "sent" /\ MayExtend(s)
  /\ db' = [db EXCEPT !.left = Lease]
  /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.asked = "done"]]
  /\ UNCHANGED <<replica, wall, sent, issued, shown, lost>>

Renewed(s) ==
  /\ server[s].status = "leading" /\ server[s].asked = "done"
  /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.asked = "nothing", !.left = CountedLeft(s), !.window = 0]]
  /\ UNCHANGED <<db, replica, wall, sent, issued, shown, lost>>

(* No reply in time: the server keeps what it counted before, and asks again. *)
GiveUpRenewal(s) ==
  /\ server[s].status = "leading" /\ server[s].asked # "nothing"
  /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.asked = "nothing", !.window = 0]]
  /\ UNCHANGED <<db, replica, wall, sent, issued, shown, lost>>

(* Deposed, refused, outcome unknown, deadline passed, SIGTERM, crash: the server drops its memory. It may do so at
   any time, and the model never forces it to: safety does not rest on a server that notices anything. *)
StepDown(s) ==
  /\ server[s].status # "standby"
  /\ server' = [server EXCEPT ![s] = Standby]
  /\ UNCHANGED <<db, replica, wall, sent, issued, shown, lost>>

(* The resignation of a server that has stepped down arrives, at once or late: nobody has the stored epoch any more,
   and the lease ends early. An epoch that only marks a new timeline cannot be resigned. *)
Resign ==
  /\ db.left > 0 /\ db.epoch % Stride # 0
  /\ Fault = "resigns while answering" \/ \A s \in Servers : server[s].epoch # db.epoch
  /\ db' = [db EXCEPT !.left = 0]
  /\ UNCHANGED <<replica, wall, server, sent, issued, shown, lost>>

-----------------------------------------------------------------------------
(* Commits *)

Entry(m) == [epoch |-> m.epoch, command |-> m.command, fence |-> m.fence]

(* The commit whose outcome the leader does not know yet. It sends no other before it knows. *)
Unknown(s) == {m \in sent : m.epoch = server[s].epoch /\ m.number = Len(server[s].memory) + 1}

(* A command that memory shows as done is answered from memory (W10). The lease is not asked for: epoch and number
   alone keep commits apart. *)
Send(s, c) ==
  /\ server[s].status = "leading" /\ Unknown(s) = {} /\ Cardinality(sent) < CommitsMax
  /\ \A e \in Entries(server[s].memory) : e.command # c
  /\ LET m == [epoch |-> server[s].epoch, number |-> Len(server[s].memory) + 1, command |-> c,
               fence |-> Max(server[s].floor, LastFence(server[s].memory)) + 1]
     IN /\ sent' = sent \cup {m}
        /\ server' = IF Fault = "answers before the commit"
                     THEN [server EXCEPT ![s] = [@ EXCEPT !.memory = Append(@, Entry(m))]]
                     ELSE server
  /\ UNCHANGED <<db, replica, wall, issued, shown, lost>>

MayCommit(m) ==
  \/ Fault = "commit ignores epoch"
  \/ /\ m.epoch = db.epoch
     /\ TimelineKnown \/ Fault = "timeline checked at election only"

(* The database executes a commit: epoch, timeline and number are checked in the statement that writes. *)
Commit(m) ==
  /\ MayCommit(m)
  /\ m.number = Len(db.log) + 1 \/ Fault = "commit ignores number"
  /\ Len(issued) <= CommitsMax
  /\ db' = [db EXCEPT !.log = Append(@, Entry(m))]
  /\ issued' = Append(issued, Entry(m))
  /\ UNCHANGED <<replica, wall, server, sent, shown, lost>>

(* The leader learns that its commit is stored: from the reply, or because it repeated the commit, or asked. *)
Learn(s, m) ==
  /\ server[s].status = "leading" /\ m \in Unknown(s)
  /\ MayCommit(m) /\ m.number = Len(db.log)
  /\ server' = [server EXCEPT ![s] = [@ EXCEPT !.memory = Append(@, Entry(m))]]
  /\ UNCHANGED <<db, replica, wall, sent, issued, shown, lost>>

-----------------------------------------------------------------------------
(* Answers *)

MayAnswer(s) == server[s].status = "leading" /\ (server[s].left > 0 \/ Fault = "answers unfenced")

(* An acknowledgement, a read or a refusal leaves. It is based on all of the server's memory. *)
Answer(s) ==
  /\ MayAnswer(s)
  /\ shown' = shown \cup Entries(server[s].memory)
  /\ UNCHANGED <<db, replica, wall, server, sent, issued, lost>>

-----------------------------------------------------------------------------
(* Promotion of a stale replica, or the restore of a backup, the same one twice included *)

Replicate ==
  /\ wall < PromotionsMax
  /\ replica' = [db EXCEPT !.left = 0]
  /\ UNCHANGED <<db, wall, server, sent, issued, shown, lost>>

(* The new timeline is one more than the replica's own, which need not be a number that was never used. *)
Promote ==
  /\ wall < PromotionsMax
  /\ wall' = wall + 1
  /\ db' = [replica EXCEPT !.timeline = @ + 1]
  /\ replica' = IF wall + 1 = PromotionsMax THEN Empty ELSE replica
  /\ lost' = lost \cup (Entries(db.log) \ Entries(replica.log))
  /\ UNCHANGED <<server, sent, issued, shown>>

(* A server finds another timeline than the stored one. It stores the new one, lets epoch and fences jump to numbers
   that grow with the wall clock, and starts a lease that nobody has: until it ends, a leader that the lost history
   knew may still answer reads. *)
Adopt ==
  /\ ~TimelineKnown
  /\ db' = [db EXCEPT
       !.known = db.timeline,
       !.epoch = IF Fault = "epoch does not jump" THEN @ + 1 ELSE wall * Stride,
       !.floor = IF Fault = "jump without clock" THEN @ + Stride ELSE wall * Stride,
       !.left = IF Fault = "no wait on a new timeline" THEN 0 ELSE Lease]
  /\ UNCHANGED <<replica, wall, server, sent, issued, shown, lost>>

-----------------------------------------------------------------------------

Next ==
  \/ Tick \/ Resign \/ Replicate \/ Promote \/ Adopt
  \/ \E s \in Servers :
       \/ Campaign(s) \/ Elect(s) \/ Load(s)
       \/ Renew(s) \/ Extend(s) \/ Renewed(s) \/ GiveUpRenewal(s)
       \/ StepDown(s) \/ Answer(s)
  \/ \E s \in Servers, c \in Commands : Send(s, c)
  \/ \E m \in sent : Commit(m)
  \/ \E s \in Servers, m \in sent : Learn(s, m)

-----------------------------------------------------------------------------
(* What must hold *)

(* At no moment can answers of two servers leave. *)
OneServerAnswers == \A s, t \in Servers : MayAnswer(s) /\ MayAnswer(t) => s = t

(* An answer never contradicts an earlier one: it is based on everything that any answer was based on. *)
AnswersAgree == \A s \in Servers : MayAnswer(s) => (shown \ lost) \subseteq Entries(server[s].memory)

(* What an answer was based on is stored (S1) and stays stored, unless a promotion dropped it. *)
NothingAcknowledgedIsLost == (shown \ lost) \subseteq Entries(db.log)

(* Once a leader has loaded, nothing is committed but by itself. *)
DeposedNeverCommits == \A s \in Servers :
  server[s].status = "leading" /\ server[s].epoch = db.epoch /\ TimelineKnown =>
    Entries(db.log) \subseteq Entries(server[s].memory) \cup {Entry(m) : m \in Unknown(s)}

(* Each fence is greater than every fence before it, those that a promotion dropped included (L11). *)
FencesGrow == \A i, j \in 1..Len(issued) : i < j => issued[i].fence < issued[j].fence \/ issued[i] = issued[j]

(* No command is applied twice, however often its commit was repeated. *)
AppliedOnce == \A i, j \in 1..Len(db.log) : db.log[i].command = db.log[j].command => i = j

-----------------------------------------------------------------------------
(* What must be possible: the negation of each is checked, and must be violated, so that nothing above holds only
   because the model never gets there. *)

NoSecondLeader == \A e \in shown : e.epoch >= db.epoch \/ \A s \in Servers : ~MayAnswer(s)
NoUnknownOutcomeInherited == \A s \in Servers : \A e \in Entries(server[s].memory) :
  e.epoch >= server[s].epoch \/ e \in shown
NoLossByPromotion == shown \cap lost = {}
NoCommitAfterPromotion == \A e \in Entries(db.log) : e.epoch < Stride
=============================================================================
