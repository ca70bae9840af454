/** The token endpoint of an issuer, found by its metadata: kept, and looked up again now and then. */

import type { Clock } from '../../clock.ts';
import {
  type IssuerExpectation,
  type IssuerMetadata,
  metadataUrls,
  readIssuerMetadata,
} from './issuer-metadata.ts';
import type { ProviderAnswer } from './provider-request.ts';

/** The issuer answered with something by which no token endpoint can be found. The message may be shown. */
export class UndiscoveredProvider extends Error {
  /** `unavailable` where asking again may help soon. */
  readonly result: 'unavailable' | 'invalid_response';

  constructor(result: UndiscoveredProvider['result'], message: string) {
    super(message);
    this.result = result;
  }
}

export interface Discovery {
  /**
   * The metadata of now. What is older than an hour is asked for again, and so is what has been doubted; while the
   * issuer gives none, the last stays in use.
   * @param get asks the issuer; what it throws is thrown on while nothing is known.
   * @throws {UndiscoveredProvider} while nothing is known.
   */
  metadata(get: (url: URL) => Promise<ProviderAnswer>): Promise<IssuerMetadata>;
  /** The last that was found. */
  known(): IssuerMetadata | undefined;
  /** A grant has failed in a way that an endpoint that has moved would explain. */
  doubt(): void;
}

const FRESH_MS = 3600_000;
/** A provider that is away is not asked for two things where it was for one. */
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
        // It is away, or broken: the endpoint may well be there.
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
