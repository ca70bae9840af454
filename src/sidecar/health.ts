import type { Health, MissingPart } from '../admin/probes.ts';
import type { TokenSource } from '../token/token-source.ts';
import { whyNoToken } from '../token/why-no-token.ts';
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
}

export function sidecarHealth({
  inUse,
  listening,
  draining,
  frontendMissing,
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
      ...inUse().flatMap(missingToken),
    ],
  };
}

export function required(credentials: readonly OpenCredential[]): TokenSource[] {
  return credentials.filter(({ config }) => config.required !== false).map(({ source }) => source);
}

function missingToken(credential: OpenCredential): MissingPart[] {
  return credential.config.required === false ? [] : withoutToken(credential);
}

/** Required or not. */
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
