"""A service with keys: the key is typed once, kept by the tab, and never a part of an address."""

from dataclasses import replace
from typing import Any

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from tests.app.conftest import Service, serve
from tests.web.browser import chromium, opened


def test_the_key_is_a_header_and_nothing_else(service: Service) -> None:
    secret, entry = new_key("ann")
    address, stop = serve(create_app(replace(service.settings), HttpSettings(api_keys=(entry,))))
    asked: list[Any] = []
    try:
        with chromium() as browser, opened(browser, address) as (page, heard):
            page.on("request", lambda request: asked.append(request))
            page.goto("/solve/assign")
            page.locator("#api-key").fill(secret)
            page.get_by_role("button", name="Use this key").click()
            page.get_by_role("button", name="Taxi dispatch").click()
            page.get_by_role("button", name="Find the best assignment").click()
            page.wait_for_selector("text=The certificate, line by line")
            with page.expect_download():
                page.get_by_role("button", name="npz").click()
            assert "401" in "".join(heard.errors)
            heard.errors.clear()
            kept = page.evaluate("[JSON.stringify(localStorage), document.cookie, sessionStorage.getItem('allot.key')]")
            assert kept == ['{"allot.theme":"auto"}', "", secret]
    finally:
        stop()
    assert not [one.url for one in asked if secret in one.url]
    streams = [one for one in asked if one.url.endswith("/events")]
    assert streams
    assert all(one.headers.get("authorization") == f"Bearer {secret}" for one in streams)
