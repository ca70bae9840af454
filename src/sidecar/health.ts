import type { Health, MissingPart } from '../admin/probes.ts';
import { credentialCondition, sentenceOf } from '../token/condition.ts';
import type { TokenSource } from '../token/token-source.ts';
import type { OpenCredential } from './token-sources.ts';

const LISTENER_MISSING: MissingPart = { part: 'listener', name: 'proxy', detail: 'not listening yet' };

interface SidecarHealth extends Health {
  /** Resolves once every required credential has had a token; never rejects. */
  readonly ready: Promise<void>;
  /** The credentials in use have changed. */
  look(): void;
}

interface SidecarHealthOptions {
  readonly inUse: () => readonly OpenCredential[];
  readonly listening: () => boolean;
  readonly draining: () => boolean;
  readonly frontendMissing: () => readonly MissingPart[];
  /** Wall time. */
  readonly nowMs: () => number;
}

export function sidecarHealth({
  inUse,
  listening,
  draining,
  frontendMissing,
  nowMs,
}: SidecarHealthOptions): SidecarHealth {
  const ready = Promise.withResolvers<void>();
  let hasStarted = false;
  const waitedFor = new WeakSet<TokenSource>();

  function started(): boolean {
    hasStarted ||= required(inUse()).every((source) => source.snapshot().obtainedFirstToken);
    return hasStarted;
  }

  function waitFor(source: TokenSource): void {
    if (waitedFor.has(source)) return;
    waitedFor.add(source);
    void source.firstToken.then(() => {
      // A superseded configuration does not decide.
      if (started()) ready.resolve();
    });
  }

  return {
    ready: ready.promise,
    look() {
      if (started()) ready.resolve();
      else for (const source of required(inUse())) waitFor(source);
    },
    draining,
    whenStarted: () => ready.promise,
    started,
    missing: () => [
      ...(listening() ? [] : [LISTENER_MISSING]),
      ...frontendMissing(),
      ...inUse()
        .filter(({ config }) => config.required !== false)
        .flatMap((each) => withoutToken(each, nowMs())),
    ],
  };
}

export function required(credentials: readonly OpenCredential[]): TokenSource[] {
  return credentials.filter(({ config }) => config.required !== false).map(({ source }) => source);
}

/** Required or not. */
export function withoutToken({ config, source }: OpenCredential, nowMs: number): MissingPart[] {
  const token = source.snapshot();
  if (token.ready) return [];
  const detail = sentenceOf(credentialCondition(config, token, nowMs), nowMs);
  return [{ part: 'credential', name: token.name, detail }];
}
