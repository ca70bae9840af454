import { formatAddress, type ListenAddress } from '../../src/platform/net/address.ts';

const BOUND_MS = 10_000;

/** What the sidecar says of itself, on its admin listener. */
export interface SidecarStatus {
  /** Undefined off Linux. */
  readonly anonymousBytes: number | undefined;
  readonly requests: number;
  readonly inFlight: number;
}

export async function readStatus(admin: ListenAddress): Promise<SidecarStatus> {
  const status = JSON.parse(await read(admin, '/api/status')) as {
    memory: { anonymousBytes?: number };
    routes: { requests: { total: number; inFlight: number } }[];
  };
  return {
    anonymousBytes: status.memory.anonymousBytes,
    requests: status.routes.reduce((sum, { requests }) => sum + requests.total, 0),
    inFlight: status.routes.reduce((sum, { requests }) => sum + requests.inFlight, 0),
  };
}

/** How many configurations have been in use. */
export async function readGeneration(admin: ListenAddress): Promise<number> {
  const { configuration } = JSON.parse(await read(admin, '/api/status')) as {
    configuration: { generation: number };
  };
  return configuration.generation;
}

/** Grants so far by `reason result`, as in `scheduled success`. */
export async function readGrants(admin: ListenAddress): Promise<ReadonlyMap<string, number>> {
  const grants = new Map<string, number>();
  const samples = (await read(admin, '/metrics')).matchAll(
    /^token_sidecar_token_refresh_total\{(.*)\} (\d+)$/gm,
  );
  for (const [, labels = '', count] of samples) {
    const label = (name: string): string | undefined => new RegExp(`\\b${name}="([^"]*)"`).exec(labels)?.[1];
    if (Number(count) > 0) grants.set(`${label('reason')} ${label('result')}`, Number(count));
  }
  return grants;
}

export function successes(grants: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [name, count] of grants) if (name.endsWith(' success')) sum += count;
  return sum;
}

async function read(admin: ListenAddress, path: string): Promise<string> {
  const answer = await fetch(`http://${formatAddress(admin)}${path}`, {
    signal: AbortSignal.timeout(BOUND_MS),
  });
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
  return await answer.text();
}
