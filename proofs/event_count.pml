/* The event count: is every item taken at last?
 *
 * loom shows that no execution of a small program ends with a thread asleep on an item. It cannot show
 * that a program which could go on for ever gets anywhere. spin can, if every process that can go on for
 * ever does at last (weak fairness), but knows nothing of weak memory: here every statement is seen at once
 * by everybody, and the fences are not there. The two check different things of the same protocol.
 *
 *   spin -a event_count.pml && gcc -O2 -DCOLLAPSE -DNFAIR=6 -o pan pan.c && ./pan -m1000000 -a -f -N all_taken
 *
 * or `cargo xtask spin`, which also plants the bugs: -DNO_SECOND_LOOK, -DNOTIFY_FIRST, -DCANCEL_SWALLOWS,
 * -DNO_SIGNALS must each violate all_taken.
 *
 * The names are those of src/idle: prepared, signals, the list with its top, the stamp.
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ITEMS
#define ITEMS 2                  /* of each submitter */
#endif
#ifndef SUBMITTERS
#define SUBMITTERS 1
#endif

byte queued = 0, taken = 0;
byte prepared = 0, signals = 0;  /* the word: each exchange of it is one atomic step */
byte top = 0, depth = 0;         /* the list, newest last */
byte list[WORKERS];
bool asleep[WORKERS];

/* One item is taken, if there is one: what a steal does. */
inline take(found) {
    atomic {
        if
        :: queued > 0 -> queued--; taken++; found = true
        :: else -> found = false
        fi
    }
}

/* Tells one: a signal for one that has prepared, or else the newest sleeper is taken off. */
inline tell() {
    atomic {
        if
        :: signals < prepared -> signals++
        :: else ->
            if
            :: depth > 0 -> depth--; asleep[list[depth]] = false
            :: else -> skip
            fi
        fi
    }
}

/* Nobody is there, or somebody is told. The look and the exchange are two steps, as in `notify_many`. */
inline notify() {
    if
    :: atomic { prepared == 0 && depth == 0 -> skip }
    :: atomic { prepared > 0 || depth > 0 -> skip }; tell()
    fi
}

/* One that had prepared goes; the signal that goes with it is passed on. */
inline cancel() {
    atomic {
        passes_on = (signals == prepared);
        prepared--;
        if
        :: passes_on -> signals--
        :: else -> skip
        fi
    };
#ifndef CANCEL_SWALLOWS
    if
    :: passes_on -> tell()
    :: else -> skip
    fi
#endif
}

/* Each worker takes as many items as fall to it if all get the same, and then is gone for ever. */
proctype worker(byte self) {
    byte left = SUBMITTERS * ITEMS / WORKERS;
    bool found, passes_on;
    do
    :: left == 0 -> break
    :: left > 0 ->
        take(found);
        if
        :: found -> left--
        :: else ->
            atomic { prepared++ };
#ifndef NO_SECOND_LOOK
            take(found);
#endif
            if
            :: found -> left--; cancel()
            :: else ->
                atomic {
                    if
#ifndef NO_SIGNALS
                    :: signals > 0 -> signals--; prepared--
                    :: signals == 0 ->
#else
                    :: true ->
                        signals = (signals == prepared -> signals - 1 : signals);
#endif
                        prepared--; list[depth] = self; depth++; asleep[self] = true
                    fi
                };
                !asleep[self]
            fi
        fi
    od
}

proctype submitter() {
    byte left = ITEMS;
    do
    :: left == 0 -> break
    :: left > 0 ->
        left--;
#ifdef NOTIFY_FIRST
        notify();
        queued++
#else
        queued++;
        notify()
#endif
    od
}

init {
    byte next;
    atomic {
        for (next : 0 .. WORKERS - 1) { run worker(next) }
        for (next : 1 .. SUBMITTERS) { run submitter() }
    }
}

ltl all_taken { <> (taken == SUBMITTERS * ITEMS) }
