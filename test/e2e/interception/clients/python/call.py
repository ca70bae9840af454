"""Gets a URL with a library and prints the body: `call.py LIBRARY URL`."""

import asyncio
import sys

library, url = sys.argv[1:]


async def by_aiohttp():
    import aiohttp

    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as answer:
        return await answer.text()


if library == "requests":
    import requests

    body = requests.get(url).text
elif library == "httpx":
    import httpx

    body = httpx.get(url).text
elif library == "aiohttp":
    body = asyncio.run(by_aiohttp())
else:
    import urllib.request

    body = urllib.request.urlopen(url).read().decode()
print(body, end="")
