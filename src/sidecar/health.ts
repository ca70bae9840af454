/** What the probes of a sidecar say, of the configuration that is in use when they are asked. */

import type { Health, MissingPart } from '../admin/probes.ts';
import type { TokenSource } from '../token/token-source.ts';
import { whyNoToken } from '../token/why-no-token.ts';
import type { OpenCredential } from './token-sources.ts';

const LISTENER_MISSING: MissingPart = { part: 'listener', name: 'proxy', detail: 'not listening yet' };

interface SidecarHealth extends Health {
  /** Resolves once every credential that the pod cannot do without has had a token; never rejects. */
  readonly ready: Promise<void>;
  /** Looks after the credentials in use, which are others from now on. */
  look(): void;
}

interface SidecarHealthOptions {
  readonly inUse: () => readonly OpenCredential[];
  readonly listening: () => boolean;
  readonly draining: () => boolean;
  /** What keeps callers of other pods out. */
  readonly frontendMissing: () => readonly MissingPart[];
}

export function sidecarHealth({
  inUse,
  listening,
  draining,
  frontendMissing,
}: SidecarHealthOptions): SidecarHealth {
  const ready = Promise.withResolvers<void>();
  let hasStarted = false;
  /** However often the configuration changes before the first token, each is waited for once. */
  const waitedFor = new WeakSet<TokenSource>();

  function started(): boolean {
    hasStarted ||= required(inUse()).every((source) => source.snapshot().obtainedFirstToken);
    return hasStarted;
  }

  function waitFor(source: TokenSource): void {
    if (waitedFor.has(source)) return;
    waitedFor.add(source);
    void source.firstToken.then(() => {
      // The last of those in use decides; one of a configuration that has been superseded meanwhile does not.
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
      ...inUse().flatMap(missingToken),
    ],
  };
}

/** Those that the pod cannot do without. */
export function required(credentials: readonly OpenCredential[]): TokenSource[] {
  return credentials.filter(({ config }) => config.required !== false).map(({ source }) => source);
}

/** Of one that is required and has no token. */
function missingToken(credential: OpenCredential): MissingPart[] {
  return credential.config.required === false ? [] : withoutToken(credential);
}

/** Of one that has no token, be it required or not. */
export function withoutToken({ config, source }: OpenCredential): MissingPart[] {
  const shown = source.snapshot();
  if (shown.ready) return [];
  const { name, lastFailure } = shown;
  const unusable = shown.credentials.detail;
  const isNew = unusable === undefined && lastFailure === undefined;
  const detail = isNew
    ? 'no token has been obtained yet'
    : whyNoToken(config, { unusable, lastFailure }).message;
  return [{ part: 'credential', name, detail }];
}
