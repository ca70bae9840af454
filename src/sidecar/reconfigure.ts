/** Loaded only if a file is followed. */

import type { Config, TlsConfig } from '../config/config.ts';
import { type Logger, setLogLevel } from '../platform/log/logger.ts';
import { type Labels, type Registry, removeSeries } from '../platform/prometheus.ts';
import { within } from '../platform/time/async.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { DataPath, Superseded } from '../proxy/data-path.ts';
import { NO_ROUTE, type ProxyMetrics } from '../proxy/metrics.ts';
import { certificateFile } from '../token/client/client-authentication.ts';
import type { TokenMetrics } from '../token/metrics.ts';
import { type InUse, servingOf } from './configuration.ts';
import { withoutToken } from './health.ts';
import type { Reconfigurable, ReconfigureOptions, WaitedFor } from './reload/follow-file.ts';
import type { OpenCredential, TokenSources } from './token-sources.ts';

export interface ReconfigurableOptions {
  readonly inUse: () => InUse;
  readonly use: (next: InUse) => void;
  readonly sources: TokenSources;
  readonly proxy: DataPath;
  readonly tokenMetrics: TokenMetrics;
  readonly proxyMetrics: ProxyMetrics;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Logger;
}

/** For credentials that are not required. */
const OPTIONAL_WAIT_MS = 30_000;

/** For requests that began with a removed credential. */
const MAX_FAREWELL_MS = 300_000;

export function reconfigurable(options: ReconfigurableOptions): Reconfigurable {
  const { inUse, use, sources, proxy, clock, log } = options;
  const leaving = new Set<InUse>();
  /** Their names must not be forgotten. */
  const coming = new Set<Config>();
  let forgetting: Promise<void> = Promise.resolve();

  async function reconfigure(config: Config, reconfigureOptions: ReconfigureOptions): Promise<boolean> {
    // Before the wait, so that the names are spared meanwhile.
    coming.add(config);
    await forgetting;
    let isTaken = false;
    try {
      isTaken = await takeIntoUse(config, reconfigureOptions);
      return isTaken;
    } finally {
      coming.delete(config);
      if (!isTaken) void forget(config);
    }
  }

  async function takeIntoUse(config: Config, { abandoned, onWait }: ReconfigureOptions): Promise<boolean> {
    const before = inUse();
    const credentials = await sources.open(config.credentials, before.credentials);
    const known = new Set(before.credentials.map(({ source }) => source));
    const fresh = credentials.filter(({ source }) => !known.has(source));
    const closeFresh = () => sources.close(fresh.map(({ source }) => source));
    let superseded: Superseded;
    try {
      if (fresh.length > 0) {
        onWait(waitedFor(fresh, clock));
        await allGranted(fresh, abandoned);
      }
      if (abandoned.aborted) {
        await closeFresh();
        return false;
      }
      superseded = await proxy.reconfigure(servingOf({ config, credentials }));
    } catch (error) {
      await closeFresh();
      throw error;
    }
    use({ config, credentials });
    if (config.logLevel !== before.config.logLevel) setLogLevel(log, config.logLevel);
    takeLeave(before, superseded).catch((error: unknown) => {
      log.error({ err: error }, 'a configuration that is no longer in use was not put away');
    });
    return true;
  }

  /** Resolves once the required have a token and the others had their time, or when abandoned. */
  async function allGranted(fresh: readonly OpenCredential[], abandoned: AbortSignal): Promise<void> {
    const over = new Promise<void>((resolve) => {
      if (abandoned.aborted) resolve();
      else abandoned.addEventListener('abort', () => resolve(), { once: true });
    });
    const granted = fresh.map(({ config, source }) =>
      config.required === false ? within(OPTIONAL_WAIT_MS, source.firstToken, clock) : source.firstToken,
    );
    await Promise.race([over, Promise.all(granted)]);
  }

  async function takeLeave(before: InUse, { whenUnused }: Superseded): Promise<void> {
    leaving.add(before);
    let isUnused = false;
    const unused = whenUnused().then(() => {
      isUnused = true;
    });
    await within(MAX_FAREWELL_MS, unused, clock);
    leaving.delete(before);
    // Those shared with another leaving configuration are closed with it.
    const kept = new Set(users().flatMap(({ credentials }) => credentials.map(({ source }) => source)));
    await sources.close(before.credentials.map(({ source }) => source).filter((source) => !kept.has(source)));
    await forget(before.config);
    if (isUnused) return;
    await unused;
    await forget(before.config);
  }

  /**
   * Runs one at a time, and never while a configuration is taken into use. Never rejects: leftover series must not
   * block the next one.
   */
  function forget(before: Config): Promise<void> {
    forgetting = forgetting.then(async () => {
      try {
        await forgetGone(before);
      } catch (error) {
        log.error({ err: error }, 'series of what is no longer configured stay in the metrics');
      }
    });
    return forgetting;
  }

  async function forgetGone(before: Config): Promise<void> {
    const { registry, tokenMetrics, proxyMetrics } = options;
    const gone = new Set(staleSubjects(before, [...users().map(({ config }) => config), ...coming]));
    for (const { name } of before.credentials) if (gone.has(credentialOf(name))) tokenMetrics.forget(name);
    for (const name of routeNamesOf(before)) {
      if (gone.has(routeOf(name)) && !proxyMetrics.forget(name)) gone.delete(routeOf(name));
    }
    if (gone.size > 0) await removeSeries(registry, (labels) => isAbout(gone, labels));
  }

  function users(): InUse[] {
    return [inUse(), ...leaving];
  }

  return { config: () => inUse().config, reconfigure };
}

function waitedFor(fresh: readonly OpenCredential[], clock: Clock): WaitedFor {
  const sentences = (isRequired: boolean, bound: string) => () =>
    fresh
      .filter(({ config }) => (config.required !== false) === isRequired)
      .flatMap((each) => withoutToken(each, clock.now().wallMs))
      .map(({ detail }) => `${detail}${bound}`);
  return {
    required: sentences(true, ''),
    optional: sentences(false, ` (waited for ${OPTIONAL_WAIT_MS / 1000} s at most)`),
  };
}

type Subject = string;

/** In `before`, and in none of `users`. */
export function staleSubjects(before: Config, users: readonly Config[]): ReadonlySet<Subject> {
  const kept = new Set(users.flatMap(subjectsOf));
  return new Set(subjectsOf(before).filter((subject) => !kept.has(subject)));
}

export function isAbout(gone: ReadonlySet<Subject>, labels: Labels): boolean {
  const { route, credential, file } = labels;
  const user =
    route !== undefined ? routeOf(route) : credential !== undefined ? credentialOf(credential) : undefined;
  return user !== undefined && (gone.has(user) || (file !== undefined && gone.has(fileOf(user, file))));
}

export function routeOf(name: string): Subject {
  return JSON.stringify(['route', name]);
}

export function credentialOf(name: string): Subject {
  return JSON.stringify(['credential', name]);
}

function fileOf(user: Subject, file: string): Subject {
  return `${user} ${file}`;
}

function subjectsOf(config: Config): Subject[] {
  return [
    ...routeNamesOf(config).map(routeOf),
    ...config.routes.flatMap(({ name, tls }) => filesOf(routeOf(name), tls)),
    ...listsOf(config).flatMap(([prefix, entries]) =>
      (entries ?? []).flatMap(({ host, tls }) => filesOf(routeOf(`${prefix}:${host}`), tls)),
    ),
    ...config.credentials.flatMap(({ name, tls, clientAuth }) => {
      const certificate = certificateFile(clientAuth);
      return [
        credentialOf(name),
        ...filesOf(credentialOf(name), tls),
        // From the mounted Secret.
        ...(certificate === undefined ? [] : [fileOf(credentialOf(name), certificate)]),
      ];
    }),
  ];
}

function filesOf(user: Subject, tls: TlsConfig): Subject[] {
  return (['caFile', 'certFile'] as const)
    .filter((file) => tls[file] !== undefined)
    .map((file) => fileOf(user, file));
}

/** That requests may be counted under. */
function routeNamesOf(config: Config): string[] {
  return [
    NO_ROUTE,
    ...config.routes.map(({ name }) => name),
    ...listsOf(config).flatMap(([prefix, entries]) => namesBy(prefix, entries)),
  ];
}

type Entries = readonly { readonly host: string; readonly tls: TlsConfig }[] | undefined;

function listsOf({ forwardProxy, capture, redirect }: Config): readonly (readonly [string, Entries])[] {
  return [
    ['forward', forwardProxy?.allow],
    ['capture', capture?.hosts],
    ['redirect', redirect?.hosts],
  ];
}

function namesBy(prefix: string, entries: Entries): string[] {
  return entries === undefined
    ? []
    : ['other', ...entries.map(({ host }) => host)].map((host) => `${prefix}:${host}`);
}
