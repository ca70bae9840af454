/** Reports in each profile's status whether it is valid and how many pods use it. One replica does this. */

import { type ApiObject, type KubernetesApi, statusOf } from '../../platform/kubernetes/api.ts';
import { watchAsLeader } from '../../platform/kubernetes/leadership.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { describeProblem } from '../../platform/problems.ts';
import { type BackoffOptions, doublingMs } from '../../platform/time/async.ts';
import { ANNOTATION, LABEL } from '../pod/annotations.ts';
import {
  keptStatus,
  PROFILE_API_VERSION,
  type ProfileIdentity,
  type ProfileKind,
  type ProfileStatus,
  type ValidatedProfile,
} from './profile.ts';
import { type KeptProfile, PLURALS, type ProfileStore } from './profile-store.ts';

interface ProfileReportsOptions extends BackoffOptions {
  readonly store: Pick<ProfileStore, 'all' | 'settled'>;
  readonly namespace: string;
  /** Its holder does the work. */
  readonly leaseName: string;
  readonly identity: string;
  readonly log: Logger;
}

const PODS = '/api/v1/pods';
/** A pod may have 1.5 MiB, and takes sevenfold while decoded. */
const QUERY = {
  labelSelector: `${LABEL.profile}=true`,
  fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
  limit: 10,
};
/** Per look, every five seconds. */
const MAX_WRITES = 50;
/** Per look; then the API server is left alone. */
const MAX_FAILURES = 5;
/** After a failed write of a profile. */
const PAUSE = { firstMs: 30_000, maxMs: 600_000 };
const MAX_MESSAGE_LENGTH = 4096;

interface Failing {
  readonly failures: number;
  readonly notBeforeMs: number;
}

export function startProfileReports(
  api: KubernetesApi,
  options: ProfileReportsOptions,
): { close(): Promise<void> } {
  const { store, clock, log } = options;
  const usage = createProfileUsage();
  let failing = new Map<string, Failing>();
  /** The next look begins with the uid after it. */
  let lastTried: string | undefined;

  const watch = watchAsLeader<UsingPod & ApiObject>(
    api,
    { ...options, name: options.leaseName },
    {
      path: PODS,
      query: QUERY,
      seen: (pod) => usage.seen(pod),
      gone: (pod) => usage.gone(pod),
      forget: () => usage.clear(),
      async look() {
        if (store.settled()) await writeAll();
      },
      failure: 'profiles not reported on',
    },
  );

  async function writeAll(): Promise<void> {
    const profiles = [...store.all()];
    const counts = usage.of(profiles.map(({ judged }) => judged.identity));
    failing = new Map(
      profiles.flatMap(({ uid }) => {
        const one = failing.get(uid);
        return one === undefined ? [] : [[uid, one]];
      }),
    );
    const next = profiles.findIndex(({ uid }) => uid === lastTried) + 1;
    let writes = 0;
    let failures = 0;
    for (const profile of [...profiles.slice(next), ...profiles.slice(0, next)]) {
      if (!watch.leads() || writes >= MAX_WRITES || failures >= MAX_FAILURES) return;
      const { uid, judged } = profile;
      if (clock.monotonicMs() < (failing.get(uid)?.notBeforeMs ?? 0)) continue;
      const status = statusFor(profile, counts.get(judged.identity), clock.now().wallMs);
      if (keptStatus(status).says === profile.status?.says) continue;
      writes++;
      lastTried = uid;
      try {
        await api.request('PATCH', `${pathOf(judged)}/status`, {
          contentType: 'application/merge-patch+json',
          body: { status },
        });
        failing.delete(uid);
      } catch (error) {
        // It has been deleted meanwhile.
        if (statusOf(error) === 404) continue;
        failures++;
        postpone(judged, uid, error);
      }
    }
  }

  function postpone(
    { identity: { kind, namespace, name } }: ValidatedProfile,
    uid: string,
    error: unknown,
  ): void {
    const before = failing.get(uid)?.failures ?? 0;
    const delayMs = doublingMs(before, PAUSE);
    failing.set(uid, { failures: before + 1, notBeforeMs: clock.monotonicMs() + delayMs });
    const of = { kind, namespace, name, retryInMs: delayMs };
    log.warn({ err: error, ...of }, 'status of a profile not written');
  }

  return { close: () => watch.close() };
}

function pathOf({ identity: { kind, name, namespace } }: ValidatedProfile): string {
  const root = `/apis/${PROFILE_API_VERSION}`;
  const within = namespace === undefined ? root : `${root}/namespaces/${encodeURIComponent(namespace)}`;
  return `${within}/${PLURALS[kind]}/${encodeURIComponent(name)}`;
}

function statusFor(
  { judged, status: before }: KeptProfile,
  { pods, outdatedPods }: Usage = { pods: 0, outdatedPods: 0 },
  nowMs: number,
): Required<ProfileStatus> {
  const { generation = 0 } = judged.identity;
  const status = judged.state === 'valid' ? 'True' : 'False';
  const last = before?.valid;
  return {
    observedGeneration: generation,
    pods,
    outdatedPods,
    conditions: [
      {
        type: 'Valid',
        status,
        reason: judged.state === 'valid' ? 'Valid' : 'Invalid',
        message: messageFor(judged),
        observedGeneration: generation,
        lastTransitionTime:
          last?.status === status
            ? last.lastTransitionTime
            : new Date(nowMs).toISOString().replace(/\.\d+/, ''),
      },
    ],
  };
}

function messageFor(judged: ValidatedProfile): string {
  if (judged.state === 'valid') return 'pods can use it';
  const message = judged.problems.map(describeProblem).join('; ');
  const cut = message.length <= MAX_MESSAGE_LENGTH ? message : `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
  // The API server replaces half a surrogate pair, so the text would be written again and again.
  return cut.toWellFormed();
}

// Counts pods by profile, from their annotation `token-sidecar.dev/profiles-in-use`.

interface UsingPod {
  readonly metadata: {
    readonly uid?: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
}

interface Usage {
  readonly pods: number;
  readonly outdatedPods: number;
}

interface Use {
  readonly kind: ProfileKind;
  readonly name: string;
  readonly generation: number | undefined;
}

/** Further pods are not counted. */
const MAX_PODS = 50_000;
/** The injector accepts no more. */
const MAX_PROFILES_OF_POD = 16;

interface ProfileUsage {
  seen(pod: UsingPod): void;
  gone(pod: UsingPod): void;
  clear(): void;
  of(profiles: readonly ProfileIdentity[]): ReadonlyMap<ProfileIdentity, Usage>;
}

export function createProfileUsage(): ProfileUsage {
  const pods = new Map<string, { readonly namespace: string; readonly inUse: string }>();

  return {
    seen({ metadata: { uid = '', namespace = '', annotations = {}, deletionTimestamp } }) {
      const inUse = annotations[ANNOTATION.profilesInUse];
      if (inUse === undefined || deletionTimestamp !== undefined) {
        pods.delete(uid);
        return;
      }
      if (pods.size >= MAX_PODS && !pods.has(uid)) return;
      // A copy, since a slice would hold on to the whole text.
      pods.set(uid, { namespace, inUse: Buffer.from(inUse.slice(0, 4096)).toString() });
    },
    gone: ({ metadata: { uid = '' } }) => void pods.delete(uid),
    clear: () => pods.clear(),
    of(profiles) {
      const alike = new Map<string, { readonly namespace: string; readonly inUse: string; count: number }>();
      for (const { namespace, inUse } of pods.values()) {
        const key = `${namespace} ${inUse}`;
        const found = alike.get(key);
        if (found === undefined) alike.set(key, { namespace, inUse, count: 1 });
        else found.count++;
      }
      const counts = new Map<string, Map<number | undefined, number>>();
      for (const { namespace, inUse, count } of alike.values()) {
        for (const { kind, name, generation } of usesIn(inUse)) {
          const key = keyOf({ kind, name, namespace });
          const found = counts.get(key) ?? new Map<number | undefined, number>();
          found.set(generation, (found.get(generation) ?? 0) + count);
          counts.set(key, found);
        }
      }
      return new Map(profiles.map((profile) => [profile, usageOf(profile, counts.get(keyOf(profile)))]));
    },
  };
}

/** `TokenProfile/payments@3, ClusterTokenProfile/crm@1`. */
function usesIn(text: string): readonly Use[] {
  return text
    .split(',')
    .slice(0, MAX_PROFILES_OF_POD)
    .flatMap((part) => {
      const [, kind, name, generation] =
        /^ *(TokenProfile|ClusterTokenProfile)\/([a-z0-9-]{1,63})(?:@(\d{1,15}))? *$/.exec(part) ?? [];
      if (kind === undefined || name === undefined) return [];
      return [
        {
          kind: kind as ProfileKind,
          name,
          generation: generation === undefined ? undefined : Number(generation),
        },
      ];
    });
}

function usageOf(
  { generation = 0 }: ProfileIdentity,
  counts: ReadonlyMap<number | undefined, number> = new Map(),
): Usage {
  let pods = 0;
  let outdatedPods = 0;
  for (const [made, count] of counts) {
    pods += count;
    if (made !== undefined && made < generation) outdatedPods += count;
  }
  return { pods, outdatedPods };
}

function keyOf({ kind, name, namespace = '' }: Pick<ProfileIdentity, 'kind' | 'name' | 'namespace'>): string {
  return kind === 'TokenProfile' ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
}
