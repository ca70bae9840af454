/** Says on the status of each profile whether it is valid, and how many pods use it. One replica does it. */

import { describeProblem } from '../../config/problems.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../log/logger.ts';
import { contendForLeadership } from '../certificate/leadership.ts';
import { type ApiObject, type KubernetesApi, statusOf } from '../kubernetes/api.ts';
import type { BackoffOptions } from '../kubernetes/backoff.ts';
import { watchCollection } from '../kubernetes/collection-watch.ts';
import { PROFILE_LABEL } from '../pod/annotations.ts';
import { type JudgedProfile, PROFILE_API_VERSION } from './profile.ts';
import { type KeptProfile, PLURALS, type ProfileStatus, type ProfileStore } from './profile-store.ts';
import { createProfileUsage, type Usage, type UsingPod } from './profile-usage.ts';

export interface ProfileReportsOptions extends BackoffOptions {
  readonly store: Pick<ProfileStore, 'all' | 'settled'>;
  readonly namespace: string;
  /** Of the Lease whose holder does the work. */
  readonly leaseName: string;
  readonly identity: string;
  readonly log: Logger;
}

const PODS = '/api/v1/pods';
/** A pod may have 1.5 MiB, and takes up to seven times that while it is decoded. */
const QUERY = {
  labelSelector: `${PROFILE_LABEL}=true`,
  fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
  limit: 10,
};
const LOOK_EVERY_MS = 5000;
/** Of one look. A rollout changes the counts of one profile many times, and is said once in five seconds. */
const MOST_WRITES = 50;
/** After a write that failed. */
const PAUSE_MS = 30_000;
const MOST_MESSAGE = 4096;

export function startProfileReports(
  api: KubernetesApi,
  options: ProfileReportsOptions,
): { close(): Promise<void> } {
  const { store, clock, log } = options;
  const usage = createProfileUsage();
  let isListed = false;
  let pausedUntilMs = 0;
  let unwatch: (() => void) | undefined;
  let cancelTimer: (() => void) | undefined;
  let writing: Promise<void> | undefined;
  let closed = false;

  const leadership = contendForLeadership(api, { ...options, name: options.leaseName }, watch);

  function watch(): void {
    if (closed) return;
    unwatch ??= watchCollection<UsingPod & ApiObject>(api, PODS, QUERY, options, {
      begun() {
        isListed = false;
        usage.clear();
      },
      seen: (pod) => usage.seen(pod),
      gone: (pod) => usage.gone(pod),
      listed() {
        isListed = true;
      },
    });
  }

  function look(): void {
    cancelTimer = clock.after(LOOK_EVERY_MS, look);
    if (!leadership.held()) {
      unwatch?.();
      unwatch = undefined;
      isListed = false;
      usage.clear();
      return;
    }
    // Between two looks leadership may have gone and come back.
    watch();
    if (isListed && store.settled() && clock.monotonicMs() >= pausedUntilMs) {
      writing ??= writeAll()
        .catch((error: unknown) => log.error({ err: messageOf(error) }, 'profiles not reported on'))
        .finally(() => {
          writing = undefined;
        });
    }
  }

  async function writeAll(): Promise<void> {
    const profiles = [...store.all()];
    const counts = usage.of(profiles.map(({ judged }) => judged.identity));
    let writes = 0;
    for (const profile of profiles) {
      if (closed || !leadership.held() || writes >= MOST_WRITES) return;
      const { judged } = profile;
      const status = statusFor(profile, counts.get(judged.identity), clock.now().wallMs);
      if (profile.status !== undefined && summary(status) === summary(profile.status)) continue;
      writes++;
      try {
        await api.request('PATCH', `${pathOf(judged)}/status`, {
          contentType: 'application/merge-patch+json',
          body: { status },
        });
      } catch (error) {
        // It has gone meanwhile.
        if (statusOf(error) === 404) continue;
        pausedUntilMs = clock.monotonicMs() + PAUSE_MS;
        log.warn({ err: error }, 'status of a profile not written');
        return;
      }
    }
  }

  look();
  return {
    async close() {
      closed = true;
      cancelTimer?.();
      unwatch?.();
      await writing;
      await leadership.close();
    },
  };
}

function pathOf({ identity: { kind, name, namespace } }: JudgedProfile): string {
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
  const last = before?.conditions?.find(({ type }) => type === 'Valid');
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

/** As the pod that names it would be told. */
function messageFor(judged: JudgedProfile): string {
  if (judged.state === 'valid') return 'pods can use it';
  const message = judged.problems.map(describeProblem).join('; ');
  return message.length <= MOST_MESSAGE ? message : `${message.slice(0, MOST_MESSAGE - 1)}…`;
}

/** What makes two of them say the same. */
function summary({ observedGeneration, pods, outdatedPods, conditions = [] }: ProfileStatus): string {
  const told = conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  return JSON.stringify([observedGeneration, pods, outdatedPods, told]);
}
