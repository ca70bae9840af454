/** Finds an issuer's token endpoint in its metadata, which is kept and looked up again now and then. */

import type { Clock } from '../../platform/time/clock.ts';
import {
  type IssuerExpectation,
  type IssuerMetadata,
  metadataUrls,
  readIssuerMetadata,
} from './issuer-metadata.ts';
import type { ProviderAnswer } from './provider-request.ts';

/** The issuer's answer leads to no token endpoint. The message may be shown. */
export class UndiscoveredProvider extends Error {
  /** `unavailable` if asking again soon may help. */
  readonly result: 'unavailable' | 'invalid_response';

  constructor(result: UndiscoveredProvider['result'], message: string) {
    super(message);
    this.result = result;
  }
}

interface Discovery {
  /**
   * The current metadata. It is looked up again after an hour, or sooner if doubted; if the issuer then gives none, the
   * last stays in use.
   * @param get asks the issuer; its errors are rethrown while no metadata is known.
   * @throws {UndiscoveredProvider} while no metadata is known.
   */
  metadata(get: (url: URL) => Promise<ProviderAnswer>): Promise<IssuerMetadata>;
  /** The last metadata found. */
  known(): IssuerMetadata | undefined;
  /** A grant has failed in a way that a moved endpoint would explain. */
  doubt(): void;
}

const FRESH_MS = 3600_000;
/** So that a provider that is away is not asked for metadata and a token each time. */
const DOUBTED_FRESH_MS = 60_000;

export function discovery(expected: IssuerExpectation, clock: Clock): Discovery {
  let found: IssuerMetadata | undefined;
  let askedAtMs = 0;
  let freshMs = FRESH_MS;

  return {
    async metadata(get) {
      const nowMs = clock.monotonicMs();
      if (found !== undefined && nowMs - askedAtMs < freshMs) return found;
      askedAtMs = nowMs;
      freshMs = FRESH_MS;
      try {
        found = await lookUp(expected, get);
      } catch (error) {
        if (found === undefined) throw error;
        // The issuer is away, or broken: the endpoint may well be there.
        freshMs = DOUBTED_FRESH_MS;
      }
      return found;
    },
    known: () => found,
    doubt() {
      freshMs = DOUBTED_FRESH_MS;
    },
  };
}

async function lookUp(
  expected: IssuerExpectation,
  get: (url: URL) => Promise<ProviderAnswer>,
): Promise<IssuerMetadata> {
  const refusals: string[] = [];
  for (const place of metadataUrls(expected.issuerUrl)) {
    const { status, body } = await get(new URL(place));
    if (status === 408 || status === 429 || status >= 500) {
      throw new UndiscoveredProvider('unavailable', `${place}: status ${status}`);
    }
    if (status !== 200) {
      refusals.push(`${place}: status ${status}`);
      continue;
    }
    const metadata = readIssuerMetadata(body, place, expected);
    if ('wrong' in metadata) {
      throw new UndiscoveredProvider('invalid_response', `the metadata at ${place} ${metadata.wrong}`);
    }
    return metadata;
  }
  throw new UndiscoveredProvider('invalid_response', `no metadata of the issuer: ${refusals.join(', ')}`);
}
