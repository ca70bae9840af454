/** Takes a changed configuration file into use; an unusable one changes nothing. */

import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../config/config.ts';
import { reportProblems } from '../../config/report.ts';
import { SidecarError } from '../../platform/errors.ts';
import { type Logger, withoutRepeatLimit } from '../../platform/log/logger.ts';
import type { WatchMode } from '../../platform/mounted/directory-watch.ts';
import { ConfigurationError } from '../../platform/problems.ts';
import { Counter, Gauge, type Registry } from '../../platform/prometheus.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { type ConfigWatchOptions, watchConfigFile } from './config-watch.ts';
import { needsRestart } from './needs-restart.ts';

export interface Reconfigurable {
  config(): Config;
  /**
   * Takes another into use as a whole, once its new credentials have their tokens.
   * @returns false if `abandoned` aborts first.
   * @throws {SidecarError} `configuration`, having changed nothing.
   */
  reconfigure(next: Config, options: ReconfigureOptions): Promise<boolean>;
}

export interface ReconfigureOptions {
  readonly abandoned: AbortSignal;
  readonly onWait: (waitedFor: WaitedFor) => void;
}

/** A sentence for each missing token. */
export interface WaitedFor {
  /** Hold the change back without a bound. */
  readonly required: () => readonly string[];
  /** Awaited for a bounded time. */
  readonly optional: () => readonly string[];
}

interface FollowFileOptions {
  readonly path: string;
  /** At the program's start, if known. */
  readonly text: string | undefined;
  /**
   * @param text is read if absent.
   * @throws {ConfigurationError} with every problem.
   */
  readonly load: (text?: string) => Promise<Config>;
  readonly target: Reconfigurable;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly watch?: ConfigWatchOptions['watch'];
}

export interface FollowedFile {
  status(): ConfigurationStatus;
  /** Even if the file is unchanged. */
  reload(): void;
  close(): void;
}

/** Without a notification. */
const POLL_MS = 30_000;

/** Between two changes. */
export const PAUSE_MS = 1000;

/** For tokens of new credentials; then an error is logged. */
const OVERDUE_MS = 30_000;

interface Asked {
  /** If already read. */
  readonly text: string | undefined;
  /** Looks again at refused content, and reports only a different result. */
  readonly again: boolean;
}

export function followConfigFile(options: FollowFileOptions): FollowedFile {
  const { path, load, target, clock, log } = options;
  const start = target.config();
  let generation = 1;
  let sinceMs = clock.now().wallMs;
  let standing: ReloadState = { state: 'current' };
  /** On the monotonic clock; only while waiting. */
  let waitingSinceMs = 0;
  /** What to do next. */
  let due: Asked | undefined;
  let underWay: AbortController | undefined;
  let pausing: (() => void) | undefined;
  let cancelAgain: (() => void) | undefined;
  let closed = false;
  const metrics = createReloadMetrics(options.registry, () => ({
    generation,
    sinceMs,
    upToDate: isUpToDate(),
  }));

  function isUpToDate(): boolean {
    return standing.state === 'current' || (standing.state === 'waiting' && !standing.overdue);
  }

  /** Abandons the change under way, which is outdated. */
  function ask(asked: Asked): void {
    cancelAgain?.();
    due = asked;
    underWay?.abort();
    if (underWay === undefined && pausing === undefined) void work();
  }

  async function work(): Promise<void> {
    while (due !== undefined && !closed) {
      const asked = due;
      due = undefined;
      underWay = new AbortController();
      await take(asked, underWay.signal);
      underWay = undefined;
      if (!closed) await pause();
    }
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      pausing = clock.after(PAUSE_MS, () => {
        pausing = undefined;
        resolve();
      });
    });
  }

  async function take({ text, again }: Asked, abandoned: AbortSignal): Promise<void> {
    let cancelOverdue: (() => void) | undefined;
    try {
      const next = await load(text);
      const running = target.config();
      if (isDeepStrictEqual(next, running)) {
        if (standing.state !== 'current')
          log.info({ generation }, 'the configuration file says what is in use');
        standing = { state: 'current' };
        metrics.reloaded('unchanged');
        return;
      }
      const reasons = needsRestart(start, running, next);
      if (reasons.length > 0) {
        refuse(
          'restart_required',
          reasons.join('\n'),
          'the configuration takes effect with a restart alone',
          again,
        );
        return;
      }
      const onWait = ({ required, optional }: WaitedFor): void => {
        const missing = () => [...required(), ...optional()];
        const now = clock.now();
        // A change that is replaced while it waits goes on counting from the first.
        waitingSinceMs = standing.state === 'waiting' ? waitingSinceMs : now.monotonicMs;
        standing =
          standing.state === 'waiting'
            ? { ...standing, missing }
            : { state: 'waiting', sinceMs: now.wallMs, overdue: false, missing };
        const leftMs = waitingSinceMs + OVERDUE_MS - now.monotonicMs;
        if (!standing.overdue) {
          cancelOverdue = clock.after(Math.max(0, leftMs), () => reportOverdue(required));
        }
      };
      if (!(await target.reconfigure(next, { abandoned, onWait }))) return;
      generation += 1;
      sinceMs = clock.now().wallMs;
      standing = { state: 'current' };
      metrics.reloaded('success');
      log.info(
        { generation, routes: next.routes.length, credentials: next.credentials.length },
        'the configuration has changed',
      );
    } catch (error) {
      if (error instanceof ConfigurationError) {
        const report = reportProblems(error.problems, { colour: false });
        refuse('invalid', report, 'the configuration file is not valid', again);
      } else if (error instanceof SidecarError) {
        refuse('invalid', error.message, 'the configuration cannot be used', again);
      } else {
        log.error({ err: error }, 'a change of the configuration failed');
        refuse(
          'invalid',
          'an unexpected error, which the log has',
          'the configuration cannot be used',
          again,
        );
      }
    } finally {
      cancelOverdue?.();
    }
  }

  function refuse(
    result: 'invalid' | 'restart_required',
    report: string,
    text: string,
    again: boolean,
  ): void {
    // Files that it names may arrive later: the kubelet synchronizes each volume separately.
    if (result === 'invalid' && !closed) {
      cancelAgain = clock.after(POLL_MS, () => ask({ text: undefined, again: true }));
    }
    if (again && standing.state === 'refused' && standing.report === report) return;
    standing = { state: 'refused', atMs: clock.now().wallMs, result, report };
    metrics.reloaded(result);
    // Each is an answer to whoever changed the file or asked.
    withoutRepeatLimit(log).error({ generation, file: path, report }, `${text}: the one before stays in use`);
  }

  function reportOverdue(required: WaitedFor['required']): void {
    if (standing.state !== 'waiting' || required().length === 0) return;
    standing = { ...standing, overdue: true };
    metrics.reloaded('token_unavailable');
    log.error(
      { generation, file: path, missing: required() },
      'the changed configuration waits for tokens: the one before stays in use until they are there',
    );
  }

  function reportWatch(mode: WatchMode): void {
    if (mode.by === 'notification') return;
    log.warn(
      { file: path, code: mode.code, seconds: POLL_MS / 1000 },
      'the system gives no watch on the configuration file: it is looked at now and then',
    );
  }

  const unwatch = watchConfigFile(path, {
    clock,
    pollMs: POLL_MS,
    read: options.text,
    onChange: (text) => ask({ text, again: false }),
    onMode: reportWatch,
    ...(options.watch === undefined ? {} : { watch: options.watch }),
  });
  return {
    status: () => ({ file: path, generation, sinceMs, standing }),
    reload: () => ask({ text: undefined, again: false }),
    close() {
      closed = true;
      cancelAgain?.();
      unwatch();
      underWay?.abort();
      pausing?.();
    },
  };
}

type ReloadResult =
  | 'success'
  /** As the configuration in use. */
  | 'unchanged'
  | 'invalid'
  | 'restart_required'
  | 'token_unavailable';

type ReloadState =
  | { readonly state: 'current' }
  /** For tokens of new credentials. */
  | {
      readonly state: 'waiting';
      readonly sinceMs: number;
      readonly overdue: boolean;
      /** A sentence for each credential. */
      readonly missing: () => readonly string[];
    }
  /** The previous configuration stays in use. */
  | {
      readonly state: 'refused';
      readonly atMs: number;
      readonly result: 'invalid' | 'restart_required';
      /** For a person, in lines; holds no secret. */
      readonly report: string;
    };

interface ConfigurationStatus {
  readonly file: string;
  /** 1 at the program's start. */
  readonly generation: number;
  readonly sinceMs: number;
  readonly standing: ReloadState;
}

interface ReloadMetrics {
  reloaded(result: ReloadResult): void;
}

/** At each scrape. */
interface ReloadGauges {
  readonly generation: number;
  /** Wall time at which it took effect. */
  readonly sinceMs: number;
  readonly upToDate: boolean;
}

export function createReloadMetrics(registry: Registry, read: () => ReloadGauges): ReloadMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, value: (gauges: ReloadGauges) => number): void => {
    new Gauge({
      name: `token_sidecar_config_${name}`,
      help,
      registers,
      collect() {
        this.set(value(read()));
      },
    });
  };
  gauge('generation', 'Configurations that have been in use, the present one included.', (g) => g.generation);
  gauge(
    'applied_timestamp_seconds',
    'Unix time at which the configuration in use took effect.',
    ({ sinceMs }) => sinceMs / 1000,
  );
  gauge(
    'last_reload_successful',
    '1 while what the configuration file says is in use, 0 while it is not.',
    ({ upToDate }) => (upToDate ? 1 : 0),
  );
  const reloads = new Counter({
    name: 'token_sidecar_config_reload_total',
    help: 'Readings of the changed configuration file, by result.',
    labelNames: ['result'],
    registers,
  });
  return { reloaded: (result) => reloads.inc({ result }) };
}
