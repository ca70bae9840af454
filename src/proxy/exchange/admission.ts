import { SidecarError } from '../../platform/errors.ts';
import { hasPassed } from '../streams/header-rules.ts';
import type { Admission, ArrivalRule, DestinationRule } from './admission-rules.ts';
import { refuseCrossSite } from './cross-site-requests.ts';
import { showsOwn } from './own-identity.ts';
import { strayPlaceholders } from './placeholders.ts';
import { isDraining } from './proxy-load.ts';
import { bodyTooLarge } from './request-body.ts';

const whileDraining: ArrivalRule = (_, { load }) => {
  if (isDraining(load)) throw new SidecarError('draining', 'the sidecar takes no new requests');
};

const loops: ArrivalRule = ({ fields }, { instanceId }) => {
  if (hasPassed(fields, instanceId)) {
    throw new SidecarError('loop_detected', 'the request has already passed this sidecar');
  }
};

const ofOtherSites: DestinationRule = (request, destination, _, { destinations: { ownNames } }) => {
  if (ownNames !== undefined) refuseCrossSite(request, destination, ownNames);
};

const withOwnAuthorization: DestinationRule = (request, { route }) => {
  const { config, placement } = route;
  if (config.existingAuthorization === 'reject' && showsOwn(route, request)) {
    const where = placement === undefined ? 'Authorization' : 'Authorization, or what inject names';
    throw new SidecarError(
      'authorization_not_allowed',
      `route ${config.name} takes no request that has ${where}`,
    );
  }
};

const tooLarge: DestinationRule = ({ contentLength }, _, __, { limits: { requestBodyBytes } }) => {
  if (requestBodyBytes > 0 && (contentLength ?? 0) > requestBodyBytes) throw bodyTooLarge(requestBodyBytes);
};

const tooMany: DestinationRule = (_, __, { load }, { limits: { maxInFlight } }) => {
  if (load.inFlight >= maxInFlight) {
    throw new SidecarError('overloaded', `${maxInFlight} requests are in flight`);
  }
};

/** What every listener of the proxy refuses. See `admissionWith` for one whose routes have placeholders. */
export const ADMISSION: Admission = {
  onArrival: [whileDraining, loops],
  onDestination: [ofOtherSites, withOwnAuthorization, tooLarge, tooMany],
};

/** The same for apps that send placeholders for tokens. */
export function admissionWith(placeholders: readonly string[]): Admission {
  if (placeholders.length === 0) return ADMISSION;
  return {
    ...ADMISSION,
    onDestination: [strayPlaceholders(placeholders), ...ADMISSION.onDestination],
  };
}
