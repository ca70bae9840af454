import { type AdminEndpoint, plain } from './admin-server.ts';

/** `POST /quitquitquit`: how a Job's main container reports that it is done, if the sidecar is not a native one. */
export function quitEndpoint(quit: () => void): AdminEndpoint {
  return {
    method: 'POST',
    loopbackOnly: true,
    answer() {
      // After the answer has been handed to the socket, so that the caller sees it.
      setImmediate(quit);
      return plain(200, 'stopping');
    },
  };
}
