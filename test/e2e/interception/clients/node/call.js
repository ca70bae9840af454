/** Gets a URL with a library and prints the body: `call.js LIBRARY URL`. */

const [library, url] = process.argv.slice(2);

const LIBRARIES = {
  fetch: async () => (await fetch(url)).text(),

  axios: async () => {
    const { default: axios } = await import('axios');
    return (await axios.get(url)).data;
  },

  /** As an app of today has it, which heeds no proxy unless it is told to. */
  undici: async () => {
    const { EnvHttpProxyAgent, request } = await import('undici');
    const { body } = await request(url, { dispatcher: new EnvHttpProxyAgent() });
    return body.text();
  },

  WebSocket: () => echoed(new WebSocket(url.replace('https:', 'wss:'))),

  ws: async () => {
    const { WebSocket: Socket } = await import('ws');
    return echoed(new Socket(url.replace('https:', 'wss:')));
  },
};

/** What comes back of a greeting. */
function echoed(socket) {
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => socket.send('hello from the API'));
    socket.addEventListener('message', ({ data }) => {
      socket.close();
      resolve(String(data));
    });
    socket.addEventListener('error', ({ message }) => reject(new Error(message)));
  });
}

process.stdout.write(await LIBRARIES[library]());
